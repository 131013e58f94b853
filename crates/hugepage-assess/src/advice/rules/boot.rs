//! What the next boot would do that is no finding: a pool that the host cannot hold, one that is unknown, and memory that
//! only a boot provides.

use hugepage_kernel::next_boot::boot::NextBoot;
use hugepage_kernel::next_boot::pool_at_boot::PoolAtBoot;
use hugepage_kernel::{PageSize, Pages};

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::Severity;
use crate::model::HugePages;
use crate::pools;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    let too_much = context.next_boot.iter().filter_map(too_much);
    of_pool(context).into_iter().chain(other_default(context)).chain(too_much).collect()
}

/// The next boot has another default page size, for which `vm.nr_hugepages` and `huge_page_size = 0` are then.
fn other_default(context: &AdviceContext) -> Option<Recommendation> {
    let boot = context.next_boot.as_ref()?;
    let (now, next) = (boot.machine.running_default?, boot.default_size().ok()?);
    let files: Vec<_> = boot.command_lines.iter().map(|line| line.file.as_str()).take(1).collect();
    let reason = format!(
        "After the next boot the default huge page size is {next} ({}), and now it is {now}. Then vm.nr_hugepages sets the \
         pool of {next} pages, and huge_page_size = 0 asks for them.",
        files.concat()
    );
    (now != next).then(|| Recommendation {
        current: Some(next.kernel_parameter()),
        takes_effect: Effect::Reboot,
        ..Recommendation::new(Severity::Warning, Area::Boot, "default_hugepagesz", reason)
    })
}

/// The next boot asks for more pages than the host has memory.
fn too_much(boot: &NextBoot) -> Option<Recommendation> {
    let (size, why) = boot.too_much()?;
    let setting = pool::setting(size, boot.default_size() == Ok(size));
    let reason =
        format!("At the next boot {why}. The kernel gives what it can, and may leave too little to start the host.");
    let row = Recommendation::new(Severity::Critical, Area::Boot, setting, reason);
    Some(Recommendation { takes_effect: Effect::Reboot, ..row })
}

fn of_pool(context: &AdviceContext) -> Vec<Recommendation> {
    let status = &context.status;
    let Some((pool, wanted)) = status.facts.pool_state.pool.known().zip(status.recommended) else { return Vec::new() };
    if status.facts.requested.huge_pages == HugePages::Off || status.does_not_fit() {
        return Vec::new();
    }
    [at_boot(context, pool.page_size, wanted), fragmented(context, pool.page_size, pool.nr, wanted)]
        .into_iter()
        .flatten()
        .collect()
}

fn at_boot(context: &AdviceContext, size: PageSize, wanted: Pages) -> Option<Recommendation> {
    let status = &context.status;
    let is_default = status.facts.is_default(size);
    let row = Recommendation {
        area: Area::Boot,
        current: None,
        ..pool::set((size, is_default), (wanted, wanted), Severity::Notice, Effect::Reboot, String::new(), None)
    };
    match status.facts.next_boot.as_ref()? {
        PoolAtBoot::Unknown(why) => Some(Recommendation {
            reason: format!("Whether the pool of {size} pages has {wanted} after the next boot is unknown: {why}."),
            ..row
        }),
        PoolAtBoot::Set { pages, file } => {
            let capacity = status.capacity.filter(|capacity| *pages > capacity.most)?;
            Some(Recommendation {
                severity: Severity::Warning,
                current: Some(pages.to_string()),
                command: command::set_pool_at_boot(size, is_default, wanted, Some(file)),
                reason: format!("{file} sets {pages} pages of {size} at boot, more than the {}.", pool::held(capacity)),
                ..row
            })
        }
        PoolAtBoot::Unset => None,
    }
}

/// If memory is fragmented, only a reservation at boot is guaranteed to get all pages.
fn fragmented(context: &AdviceContext, size: PageSize, nr: Pages, wanted: Pages) -> Option<Recommendation> {
    let more = wanted.saturating_sub(nr);
    let ready = pools::of_size(&context.pools, size)?.obtainable_now.filter(|ready| *ready < more)?;
    let reason = format!(
        "Free memory holds only {ready} of the {more} missing pages of {size} without compaction; the kernel's command line \
         reserves them before memory is fragmented."
    );
    Some(Recommendation {
        recommended: Some(wanted.to_string()),
        command: command::set_pool_at_boot(size, false, wanted, file_at_boot(context)),
        takes_effect: Effect::Reboot,
        ..Recommendation::new(Severity::Notice, Area::Boot, "hugepages", reason)
    })
}

/// The file that sets the server's pool at the next boot.
fn file_at_boot(context: &AdviceContext) -> Option<&str> {
    match context.status.facts.next_boot.as_ref()? {
        PoolAtBoot::Set { file, .. } => Some(file),
        PoolAtBoot::Unset | PoolAtBoot::Unknown(_) => None,
    }
}
