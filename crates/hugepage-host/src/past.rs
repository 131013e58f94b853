//! What was recorded when a running server started.

use hugepage_assess::model::{Cause, CurrentStart, Demand, HugePages, Past, Pending, PoolState, Requested};
use hugepage_kernel::notes::Notes;

use super::identify::ServerIdentity;

/// Who tells what was recorded when a server started, with notes on what could not be read of it.
pub type RecallPast<'a> = dyn Fn(&ServerIdentity, &CurrentStart<'_>, &mut Notes) -> Past + 'a;

/// What the server asked for and the next start asks for, if the past shows that its files have turned huge pages on since the
/// start: the next start is one with them and the running size, with a note. `pending`: without the past.
pub(super) fn requested_with_past(
    current: &CurrentStart<'_>,
    pending: Pending,
    pool_state: &PoolState,
    past: &Past,
    notes: &mut Notes,
) -> (Requested, Pending) {
    let requested = current.requested;
    if past.cause_at_start != Some(Cause::Disabled) || requested.huge_pages == HugePages::Off {
        return (requested, pending);
    }
    notes.add(
        "the server started with huge_pages = off, and its files may ask for huge pages now; hugepage_preflight() in the server \
         shows what a restart would get",
    );
    let Some(segment) = current.segment else { return (requested, pending) };
    let pending = match pending {
        // An assessment does not use the number of connections.
        Pending::Unchanged => {
            let demand = Demand { requested, max_connections: 0, shared_memory: segment.to_reserve };
            Pending::Changed(demand, pool_state.clone())
        }
        // Files that have changed may ask for another size as well, or for nothing that the server accepts.
        pending => pending,
    };
    (Requested { huge_pages: HugePages::Off, ..requested }, pending)
}
