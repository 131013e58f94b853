//! vm.nr_hugepages: what everything on this host that is known needs, no more and no less.

use super::SizeOf;
use crate::advise::command;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::assess::{Outlook, Severity};
use crate::collect::pools;
use crate::model::{HugePages, Pending};
use crate::{PageSize, Pages};

pub fn rule(situation: &Situation, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    let mut found: Vec<_> = own(situation).into_iter().collect();
    found.extend(insurance(situation));
    found.extend(others(situation));
    found
}

/// The name of a pool's setting.
pub fn setting(size: PageSize, is_default: bool) -> String {
    if is_default { "vm.nr_hugepages".to_owned() } else { format!("{}/nr_hugepages", size.sysfs_name()) }
}

/// The pool that this server is in, or would be in.
fn own(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let pool = status.facts.pool.known()?;
    let (share, size) = (status.share?, pool.page_size);
    if status.does_not_fit() {
        return None;
    }
    let wanted = status.recommended?;
    let is_default = situation.is_default(size);
    let make = |severity, reason, takes_effect, saves| Recommendation {
        severity,
        area: Area::Kernel,
        setting: setting(size, is_default),
        current: Some(share.persistent.to_string()),
        recommended: Some(wanted.to_string()),
        reason,
        command: Some(command::set_pool(size, is_default, wanted)),
        takes_effect,
        saves,
    };
    if share.persistent < wanted && status.facts.asked.huge_pages != HugePages::Off {
        let needs = wanted.saturating_sub(share.others);
        let surplus = pool.surplus.unwrap_or_default();
        let mut reason = format!(
            "This server needs {needs} pages of {size} and others hold {}, which is {} more than the {} that the pool keeps",
            share.others,
            wanted.saturating_sub(share.persistent),
            share.persistent,
        );
        if surplus > Pages(0) {
            reason += &format!(": {surplus} of its pages are surplus, and go when their user stops");
        }
        if let Some(Fragmented { more, ready }) = fragmented(situation) {
            reason += &format!(
                "; only {ready} of the {more} more stand ready in free memory, so the kernel has to compact it first"
            );
        }
        let severity = match status.outlook {
            Outlook::Fails => Severity::Critical,
            _ if situation.in_huge_pages() => Severity::Warning,
            _ => situation.severity_of_base_pages(),
        };
        let effect = if situation.in_huge_pages() { Effect::Now } else { Effect::ServerRestart };
        return Some(make(severity, reason + ".", effect, situation.saving()));
    }
    if share.persistent > wanted {
        let idle = share.persistent.saturating_sub(wanted);
        let severity =
            if share.persistent.0 >= wanted.0.saturating_mul(2) { Severity::Warning } else { Severity::Notice };
        let reason = format!(
            "Of the pool's {} pages of {size}, {wanted} are all that anybody running needs: the other {idle} are kept from \
             everything else.",
            share.persistent
        );
        return Some(make(severity, reason, Effect::Now, Some(size.times(idle))));
    }
    None
}

/// Free memory as it lies does not hold the pages that the pool lacks.
pub struct Fragmented {
    /// How many it lacks.
    pub more: Pages,
    /// How many of these stand ready.
    pub ready: Pages,
}

/// Whether the pool that is wanted can't be had without compacting memory.
pub fn fragmented(situation: &Situation) -> Option<Fragmented> {
    let pool = situation.status.facts.pool.known()?;
    let row = pools::of_size(&situation.pools, pool.page_size)?;
    let more = situation.status.recommended?.saturating_sub(pool.nr);
    Some(Fragmented { more, ready: row.obtainable_now? }).filter(|found| found.ready < found.more)
}

/// Surplus pages are not certain, but cost nothing until they are needed: with them a pool that falls short by a little
/// still serves a start. Gigantic pages have none.
fn insurance(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let pool = status.facts.pool.known()?;
    let size = pool.page_size;
    let applies = situation.in_huge_pages()
        && pool.overcommit == Some(Pages(0))
        && size.bytes().0 < 1 << 30
        && status.facts.asked.huge_pages == HugePages::Try
        && status.to_land.is_some_and(|to_land| situation.persistent() >= to_land);
    let spare = status.capacity?.saturating_sub(situation.persistent());
    let wanted = status.needed?.min(spare);
    if !applies || wanted == Pages(0) {
        return None;
    }
    let is_default = situation.is_default(size);
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Kernel,
        setting: setting(size, is_default).replace("nr_hugepages", "nr_overcommit_hugepages"),
        current: Some("0".to_owned()),
        recommended: Some(wanted.to_string()),
        reason: format!(
            "With {wanted} surplus pages allowed, a start that the pool falls short for may still find its pages, and they \
             are taken from memory only then."
        ),
        command: Some(command::set_overcommit(size, is_default, wanted)),
        takes_effect: Effect::Now,
        saves: None,
    })
}

/// Pools of other sizes whose pages nobody has.
fn others(situation: &Situation) -> Vec<Recommendation> {
    let own = situation.status.facts.huge_page_size;
    let pending = match &situation.status.facts.pending {
        Pending::Changed(_, ground) => ground.huge_page_size,
        _ => None,
    };
    pools::of_host(&situation.pools)
        .filter(|row| ![own, pending].contains(&Some(row.pool.page_size)))
        .filter_map(|row| {
            let pool = &row.pool;
            let used = pool.in_use()?;
            let persistent = pool.persistent();
            let idle = persistent.saturating_sub(used);
            let size = pool.page_size;
            (idle > Pages(0)).then(|| Recommendation {
                severity: Severity::Notice,
                area: Area::Kernel,
                setting: setting(size, row.is_default),
                current: Some(persistent.to_string()),
                recommended: Some(used.min(persistent).to_string()),
                reason: format!(
                    "Nobody has {idle} of the {persistent} pages of {size}, and this server would not use them."
                ),
                command: Some(command::set_pool(size, row.is_default, used.min(persistent))),
                takes_effect: Effect::Now,
                saves: Some(size.times(idle)),
            })
        })
        .collect()
}
