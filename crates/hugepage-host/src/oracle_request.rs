//! What an Oracle instance asked for, and asks for at the next start.

use hugepage_assess::model::{CurrentStart, Demand, Landing, LockLimit, Pending, PoolState, Segment};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, PageSize};
use hugepage_oracle::readers::Parameters;
use hugepage_oracle::sga_size::{EXTRA, rounded};

use super::context::InspectContext;
use super::identify::ServerIdentity;
use super::observe::ObservedMemory;
use super::oracle::{lock_limit, logged_refusal};
use super::pending::OracleSettings;
use super::request::ServerRequest;
use super::requested::requested_next;

impl InspectContext<'_> {
    /// `seen`: what was seen, as if the next start asked for the same.
    pub(super) fn oracle_request(
        &self,
        seen: ServerRequest,
        id: &ServerIdentity,
        settings: OracleSettings,
        memory: &ObservedMemory,
        notes: &mut Notes,
    ) -> ServerRequest {
        let lacks = |segment| lock_limit(self.root, id.pid, &seen.requested, segment, memory.memlock);
        let refused = || logged_refusal(id.oracle()?.last_start.as_ref()?, seen.segment.as_ref()?);
        let missing = lacks(seen.segment.as_ref());
        let lock_limit = missing.or_else(refused);
        if missing.is_none() && lock_limit == Some(LockLimit::Unexplained) {
            notes.add(
                "the start found enough huge pages and took none of them: compare kernel.shmall, the NUMA policy and the \
                 limits of its owner with the alert log",
            );
        }
        let pending = match &settings.parameters {
            _ if seen.requested.is_automatic_asm() => Pending::Unchanged,
            None if settings.is_in_asm => Pending::Unknown,
            None => Pending::Unchanged,
            Some(next) => demand(next, id, &seen.current_start()).map_or(Pending::Unchanged, |demand| {
                let lock_limit = lacks(None).and_then(|limit| limit_beside(limit, seen.current_start().landing()));
                Pending::Changed(demand, PoolState { lock_limit, ..seen.pool_state.clone() })
            }),
        };
        let pool_state = PoolState { lock_limit, ..seen.pool_state };
        ServerRequest { pool_state, pending, ..seen }
    }
}

/// What the next start asks for; `None` for what runs.
fn demand(next: &Parameters, id: &ServerIdentity, current: &CurrentStart<'_>) -> Option<Demand> {
    let segment = current.segment?;
    let requested = requested_next(next, &current.requested, id.version.as_deref());
    let same_size = match (&id.oracle()?.last_start, next.sga_max_size(), current.huge_page_size) {
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
