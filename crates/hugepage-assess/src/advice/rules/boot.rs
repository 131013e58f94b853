//! Whether the pool survives a reboot, and whether only a reboot provides it.

use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use hugepage_kernel::{PageSize, Pages};

use super::pool::{Fragmented, fragmented};
use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::Severity;
use crate::model::HugePages;

/// Sorts after the files of distributions and packages, so that its value is the one in effect.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-postgresql-hugepages.conf";

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    let too_much = context.next_boot.iter().flat_map(too_much);
    survives(context).into_iter().chain(reserve(context)).chain(other_default(context)).chain(too_much).collect()
}

/// The next boot has another default page size, for which `vm.nr_hugepages` and `huge_page_size = 0` are then.
fn other_default(context: &AdviceContext) -> Option<Recommendation> {
    let boot = context.next_boot.as_ref()?;
    let (now, next) = (boot.machine.running_default?, boot.default_size().ok()?);
    let files: Vec<_> = boot.command_lines.iter().map(|line| line.file.as_str()).take(1).collect();
    (now != next).then(|| Recommendation {
        severity: Severity::Warning,
        area: Area::Boot,
        setting: "default_hugepagesz".to_owned(),
        current: Some(next.kernel_parameter()),
        recommended: None,
        reason: format!(
            "After the next boot the default huge page size is {next} ({}), and now it is {now}. Then vm.nr_hugepages sets \
             the pool of {next} pages, and huge_page_size = 0 asks for them.",
            files.concat()
        ),
        command: None,
        takes_effect: Effect::Reboot,
        saves: None,
    })
}

/// The next boot asks for more pages than the host has memory.
fn too_much(boot: &NextBoot) -> Option<Recommendation> {
    let (size, why) = boot.too_much()?;
    Some(Recommendation {
        severity: Severity::Critical,
        area: Area::Boot,
        setting: pool::setting(size, boot.default_size() == Ok(size)),
        current: None,
        recommended: None,
        reason: format!(
            "At the next boot {why}. The kernel gives what it can, and may leave too little to start the host."
        ),
        command: None,
        takes_effect: Effect::Reboot,
        saves: None,
    })
}

/// If memory is fragmented, only a reservation at boot is guaranteed to get all pages.
fn reserve(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let (size, wanted) = (status.facts.pool_state.pool.known()?.page_size, status.recommended?);
    let Fragmented { more, ready } = fragmented(context)?;
    if status.facts.requested.huge_pages == HugePages::Off || status.does_not_fit() {
        return None;
    }
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Boot,
        setting: "hugepages".to_owned(),
        current: None,
        recommended: Some(wanted.to_string()),
        reason: format!(
            "Free memory holds only {ready} of the {more} missing pages of {size} without compaction; the kernel's command \
             line reserves them before memory is fragmented."
        ),
        command: added_to_command_line(context, size, wanted),
        takes_effect: Effect::Reboot,
        saves: None,
    })
}

fn survives(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let boot = context.next_boot.as_ref()?;
    let (size, wanted) = (status.facts.pool_state.pool.known()?.page_size, status.recommended?);
    if status.facts.requested.huge_pages == HugePages::Off || status.does_not_fit() || wanted == Pages(0) {
        return None;
    }
    let is_default = status.facts.is_default(size);
    let set = match boot.pool(size) {
        PoolAtBoot::Set { pages, file } => Some((pages, file)),
        PoolAtBoot::Unset => None,
        PoolAtBoot::Unknown(why) => return Some(unknown(context, (size, is_default), wanted, &why)),
    };
    let (pages, source) = match &set {
        Some((pages, source)) => (*pages, source.as_str()),
        None => (Pages(0), ""),
    };
    let too_many = status.capacity.is_some_and(|capacity| pages > capacity.most);
    if pages >= wanted && !too_many {
        return None;
    }
    let reason = match &set {
        None if !boot.not_read.is_empty() => format!(
            "No setting that could be read reserves pages of {size} at boot; {}, so the kernel's next command line is \
             unknown.",
            boot.not_read.join("; ")
        ),
        None => {
            format!("No setting reserves pages of {size} at boot, so this server is in base pages after the next boot.")
        }
        Some(_) if too_many => format!(
            "{source} sets {pages} pages of {size} at boot, more than the {}.",
            status.capacity.map(pool::held).unwrap_or_default()
        ),
        Some(_) => format!(
            "{source} sets {pages} pages of {size} at boot, {} fewer than this host needs.",
            wanted.saturating_sub(pages)
        ),
    };
    let severity = context.severity_of_base_pages().max(if too_many { Severity::Warning } else { Severity::Notice });
    Some(Recommendation {
        area: Area::Boot,
        current: set.as_ref().map(|(pages, _)| pages.to_string()),
        command: persist(context, (size, boot.default_size() == Ok(size)), wanted, source),
        ..pool::set((size, is_default), (pages, wanted), severity, Effect::Reboot, reason, None)
    })
}

/// Says why nothing can be said.
fn unknown(context: &AdviceContext, (size, is_default): (PageSize, bool), wanted: Pages, why: &str) -> Recommendation {
    Recommendation {
        severity: context.severity_of_base_pages().min(Severity::Notice),
        area: Area::Boot,
        setting: pool::setting(size, is_default),
        current: None,
        recommended: Some(wanted.to_string()),
        reason: format!("Whether the pool of {size} pages has {wanted} after the next boot is unknown: {why}."),
        command: None,
        takes_effect: Effect::Reboot,
        saves: None,
    }
}

/// A file of sysctl.d for the default size, the kernel's command line for others.
fn persist(
    context: &AdviceContext,
    (size, is_default): (PageSize, bool),
    pages: Pages,
    source: &str,
) -> Option<String> {
    if !is_default {
        return added_to_command_line(context, size, pages);
    }
    // A later file of /etc takes precedence, so it has to be changed itself.
    let file = match source {
        source if source.starts_with("/etc/sysctl") && source.rsplit('/').next() > SYSCTL_FILE.rsplit('/').next() => {
            return Some(format!("sed -i -E 's|^[- ]*vm[./]nr_hugepages *=.*|vm.nr_hugepages = {pages}|' {source}"));
        }
        _ => SYSCTL_FILE,
    };
    Some(format!("echo 'vm.nr_hugepages = {pages}' > {file}"))
}

/// A reservation on the kernel's command line; `None` where the line has another one of that size: of two counts the first counts.
fn added_to_command_line(context: &AdviceContext, size: PageSize, wanted: Pages) -> Option<String> {
    let has_other = |pool: PoolAtBoot| match pool {
        PoolAtBoot::Set { pages, .. } => pages < wanted,
        PoolAtBoot::Unset => false,
        PoolAtBoot::Unknown(_) => true,
    };
    let mut lines = context.next_boot.iter().flat_map(|boot| &boot.command_lines);
    (!lines.any(|line| has_other(line.pool(size)))).then(|| command::reserve_at_boot(size, wanted))
}
