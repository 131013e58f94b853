//! vm.nr_hugepages: the exact need of all known users of this host's pools.

use hugepage_kernel::Pages;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Effect, Recommendation};
use crate::advice::{command, pool};
use crate::assessment::{Outlook, Severity};
use crate::model::{HugePages, Pending};
use crate::pools;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    let mut found: Vec<_> = own(context).into_iter().collect();
    found.extend(overcommit(context));
    found.extend(others(context));
    found
}

/// The pool that this server is in, or would be in.
fn own(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let pool = status.facts.pool_state.pool.known()?;
    let (share, size) = (status.share?, pool.page_size);
    if status.does_not_fit() {
        return None;
    }
    let wanted = status.recommended?;
    let of_size = (size, status.facts.is_default(size));
    let pages = (share.persistent, wanted);
    if share.persistent < wanted && status.facts.requested.huge_pages != HugePages::Off {
        let needs = wanted.saturating_sub(share.others);
        let surplus = pool.surplus.unwrap_or_default();
        let mut reason = pool::shortfall("This server needs", needs, share.others, pages, size);
        if surplus > Pages(0) {
            reason += &format!("; its {surplus} surplus pages are freed when their user stops");
        }
        if let Some(Fragmented { more, ready }) = fragmented(context) {
            reason += &format!("; only {ready} of {more} more pages can be allocated without compacting memory");
        }
        let severity = match status.outlook {
            _ if context.in_huge_pages() && status.crash.outlook == Outlook::Fails => Severity::Critical,
            Outlook::Fails => Severity::Critical,
            _ if context.in_huge_pages() => Severity::Warning,
            _ => context.severity_of_base_pages(),
        };
        let effect = if context.in_huge_pages() { Effect::Now } else { Effect::ServerRestart };
        reason += &pool::caution(wanted, size, status.capacity.filter(|_| wanted > pool.nr));
        return Some(pool::set(of_size, pages, severity, effect, reason + ".", context.saving()));
    }
    if share.persistent > wanted && status.facts.others_lack.is_none() {
        let reason = format!("{}.", pool::unused(share.persistent, wanted, size));
        let unused = size.times(share.persistent.saturating_sub(wanted));
        return Some(unknown_users(pool::set(of_size, pages, Severity::Notice, Effect::Now, reason, Some(unused))));
    }
    if share.persistent > wanted {
        let unused = size.times(share.persistent.saturating_sub(wanted));
        let severity =
            if share.persistent.0 >= wanted.0.saturating_mul(2) { Severity::Warning } else { Severity::Notice };
        let reason = format!("{} and cannot be used for anything else.", pool::excess(share.persistent, wanted, size));
        return Some(pool::set(of_size, pages, severity, Effect::Now, reason, Some(unused)));
    }
    None
}

/// Says what is known and gives no number, because users that can't be seen may need the pages.
fn unknown_users(row: Recommendation) -> Recommendation {
    Recommendation { recommended: None, command: None, ..row }
}

/// Free memory is too fragmented for the pages that the pool lacks.
pub struct Fragmented {
    /// How many it lacks.
    pub more: Pages,
    /// How many of these can be allocated without compaction.
    pub ready: Pages,
}

/// `None` if the recommended pool can be allocated without compaction, or that is unknown.
pub fn fragmented(context: &AdviceContext) -> Option<Fragmented> {
    let pool = context.status.facts.pool_state.pool.known()?;
    let row = pools::of_size(&context.pools, pool.page_size)?;
    let more = context.status.recommended?.saturating_sub(pool.nr);
    Some(Fragmented { more, ready: row.obtainable_now? }).filter(|found| found.ready < found.more)
}

/// Surplus pages are not guaranteed, but cost nothing until they are used: with them a slightly too small pool can
/// still serve a start. Gigantic pages have none.
fn overcommit(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let pool = status.facts.pool_state.pool.known()?;
    let size = pool.page_size;
    let applies = context.in_huge_pages()
        && pool.overcommit == Some(Pages(0))
        && size.bytes().0 < 1 << 30
        && status.facts.requested.huge_pages == HugePages::Try
        && status.to_land.is_some_and(|to_land| context.persistent() >= to_land);
    let spare = status.capacity?.within_reserve.min(status.capacity?.most).saturating_sub(context.persistent());
    let wanted = status.needed?.min(spare);
    if !applies || wanted == Pages(0) {
        return None;
    }
    let is_default = status.facts.is_default(size);
    let reason = format!(
        "With {wanted} surplus pages allowed, a start can use free memory if the pool has too few pages; until then they take \
         no memory."
    );
    Some(Recommendation {
        setting: pool::setting(size, is_default).replace("nr_hugepages", "nr_overcommit_hugepages"),
        command: Some(command::set_overcommit(size, is_default, wanted)),
        ..pool::set((size, is_default), (Pages(0), wanted), Severity::Notice, Effect::Now, reason, None)
    })
}

/// Pools of other sizes with unused pages.
fn others(context: &AdviceContext) -> Vec<Recommendation> {
    let own = context.status.facts.pool_state.huge_page_size;
    let pending = match &context.status.facts.pending {
        Pending::Changed(_, pool_state) => pool_state.huge_page_size,
        _ => None,
    };
    pools::of_host(&context.pools)
        .filter(|row| ![own, pending].contains(&Some(row.pool.page_size)))
        .filter_map(|row| {
            let (size, now) = (row.pool.page_size, row.pool.persistent());
            let used = row.pool.in_use()?.min(now);
            let unused = now.saturating_sub(used);
            let reason = format!("{unused} of the {now} pages of {size} are unused, and this server cannot use them.");
            let of_size = (size, row.is_default);
            (unused > Pages(0)).then(|| {
                let saves = Some(size.times(unused));
                let row = pool::set(of_size, (now, used), Severity::Notice, Effect::Now, reason, saves);
                if context.status.facts.others_lack.is_some() { row } else { unknown_users(row) }
            })
        })
        .collect()
}
