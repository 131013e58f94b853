//! What an Oracle instance asked for, and asks for at the next start.

use hugepage_assess::model::{CurrentStart, Demand, Landing, LockLimit, Pending, PoolState, Segment};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, PageSize};

use crate::lock_limit::logged_refusal;
use crate::readers::{LastStart, Parameters};
use crate::requested::requested_next;
use crate::settings::OracleSettings;
use crate::sga_size::{EXTRA, rounded};

/// What refuses the running instance huge pages, and what its next start asks for. `pool_state`: what a start finds. `lacks`: the
/// permission that it lacks. `beyond`: the limit of the host that a start with so much exceeds when so much has ended.
pub fn next_start(
    settings: &OracleSettings,
    start: Option<&LastStart>,
    current: &CurrentStart<'_>,
    pool_state: &PoolState,
    lacks: impl Fn(Option<&Segment>) -> Option<LockLimit>,
    beyond: impl Fn(Bytes, Bytes) -> Option<LockLimit>,
    notes: &mut Notes,
) -> (Option<LockLimit>, Pending) {
    let refused = || logged_refusal(start?, current.segment?);
    let missing = lacks(current.segment);
    let lock_limit = missing.or_else(refused);
    if missing.is_none() && lock_limit == Some(LockLimit::Unexplained) {
        notes.add(
            "the start found enough huge pages and took none of them: compare kernel.shmall, the NUMA policy and the \
                 limits of its owner with the alert log",
        );
    }
    let pending = match &settings.parameters {
        _ if current.requested.is_automatic_asm() => Pending::Unchanged,
        None if settings.is_unread => Pending::Unknown,
        None => Pending::Unchanged,
        Some(next) => demand(next, start, current).map_or(Pending::Unchanged, |demand| {
            let own = current.segment.map_or(Bytes(0), |segment| segment.size);
            let of_host = beyond(next.sga_max_size().unwrap_or(own), own);
            let lock_limit = of_host.or_else(|| limit_beside(lacks(None)?, current.landing()));
            Pending::Changed(demand, PoolState { lock_limit, ..pool_state.clone() })
        }),
    };
    (lock_limit, pending)
}

/// What the next start asks for; `None` for what runs.
fn demand(next: &Parameters, start: Option<&LastStart>, current: &CurrentStart<'_>) -> Option<Demand> {
    let segment = current.segment?;
    let requested = requested_next(next, &current.requested, start.and_then(|start| start.version.as_deref()));
    let same_size = match (start, next.sga_max_size(), current.huge_page_size) {
        (_, None, _) => true,
        (Some(start), size, _) if !start.parameters.is_empty() => start.parameters.sga_max_size() == size,
        (_, Some(size), Some(page)) => is_about(segment, size, page),
        _ => true,
    };
    if same_size
        && requested.huge_pages == current.requested.huge_pages
        && requested.product == current.requested.product
    {
        return None;
    }
    let shared_memory = match (next.sga_max_size(), current.huge_page_size) {
        (Some(size), Some(page)) if !same_size => page.times(page.pages_to_hold(rounded(size)).saturating_add(EXTRA)),
        _ => segment.to_reserve,
    };
    // An assessment does not use the number of connections.
    Some(Demand { requested, max_connections: 0, shared_memory })
}

/// The permission that the next start lacks by `limit` where the running one landed so.
fn limit_beside(limit: LockLimit, landing: Landing) -> Option<LockLimit> {
    match limit {
        // Whoever has huge pages was let, whatever its groups are now.
        LockLimit::ShmGroup { .. } | LockLimit::Either { limit: None, .. } if landing == Landing::Hugetlb => None,
        // It is not in the group, so memlock let it.
        LockLimit::Either { limit: Some(limit), .. } if landing == Landing::Hugetlb => {
            Some(LockLimit::Memlock { limit, others: Bytes(0) })
        }
        limit => Some(limit),
    }
}

/// Whether a segment is that of an SGA with this SGA_MAX_SIZE, which the instance rounds.
fn is_about(segment: &Segment, size: Bytes, page: PageSize) -> bool {
    let wanted = page.pages_to_hold(rounded(size));
    let has = page.pages_to_hold(segment.to_reserve);
    has >= page.pages_to_hold(size) && has <= wanted.saturating_add(EXTRA).saturating_add(EXTRA)
}
