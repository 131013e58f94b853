//! Whether the pool survives a reboot, and whether it takes one to have it.

use super::SizeOf;
use super::pool::{Fragmented, fragmented, setting};
use crate::advise::command;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::assess::Severity;
use crate::model::HugePages;
use crate::{PageSize, Pages};

/// Sorts behind what packages bring, so that it wins.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-postgresql-hugepages.conf";

pub fn rule(situation: &Situation, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    survives(situation).into_iter().chain(reserve(situation)).collect()
}

/// Where memory is fragmented, only a reservation at boot is certain to get all pages.
fn reserve(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let (size, wanted) = (status.facts.pool.known()?.page_size, status.recommended?);
    let Fragmented { more, ready } = fragmented(situation)?;
    if status.facts.asked.huge_pages == HugePages::Off || status.does_not_fit() {
        return None;
    }
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Boot,
        setting: "hugepages".to_owned(),
        current: None,
        recommended: Some(wanted.to_string()),
        reason: format!(
            "Of the {more} pages of {size} that the pool lacks only {ready} stand ready in free memory; reserved on the \
             kernel's command line, before anything can fragment memory, all of them are certain."
        ),
        command: Some(command::reserve_at_boot(size, wanted)),
        takes_effect: Effect::Reboot,
        saves: None,
    })
}

fn survives(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let boot = situation.next_boot.as_ref()?;
    let (size, wanted) = (status.facts.pool.known()?.page_size, status.recommended?);
    if status.facts.asked.huge_pages == HugePages::Off || status.does_not_fit() || wanted == Pages(0) {
        return None;
    }
    let is_default = situation.is_default(size);
    let set = boot.pages(size, is_default);
    let (pages, source) = match &set {
        Some((pages, source)) => (*pages, source.as_str()),
        None => (Pages(0), ""),
    };
    let too_many = status.capacity.is_some_and(|capacity| pages > capacity);
    if pages >= wanted && !too_many {
        return None;
    }
    let reason = match &set {
        None => {
            format!("Nothing sets the pool of {size} pages at boot, so the next one leaves this server in base pages.")
        }
        Some(_) if too_many => format!(
            "{source} sets {pages} pages of {size} at boot, more than the {} that this host can hold beside the {}% of memory \
             kept for base pages.",
            status.capacity.unwrap_or_default(),
            status.facts.reserve_percent
        ),
        Some(_) => format!(
            "{source} sets {pages} pages of {size} at boot, {} fewer than this host needs.",
            wanted.saturating_sub(pages)
        ),
    };
    Some(Recommendation {
        severity: situation.severity_of_base_pages().max(if too_many { Severity::Warning } else { Severity::Notice }),
        area: Area::Boot,
        setting: setting(size, is_default),
        current: set.as_ref().map(|(pages, _)| pages.to_string()),
        recommended: Some(wanted.to_string()),
        reason,
        command: Some(persist(size, is_default, wanted, source)),
        takes_effect: Effect::Reboot,
        saves: None,
    })
}

/// For the default size a file of sysctl.d, which sysctl.d's own order must not undo; for others there is none.
fn persist(size: PageSize, is_default: bool, pages: Pages, source: &str) -> String {
    if !is_default {
        return command::reserve_at_boot(size, pages);
    }
    // What stands in a later file of /etc has to be changed there.
    let file = match source {
        source if source.starts_with("/etc/sysctl") && source.rsplit('/').next() > SYSCTL_FILE.rsplit('/').next() => {
            return format!("sed -i -E 's|^[- ]*vm[./]nr_hugepages *=.*|vm.nr_hugepages = {pages}|' {source}");
        }
        _ => SYSCTL_FILE,
    };
    format!("echo 'vm.nr_hugepages = {pages}' > {file}")
}
