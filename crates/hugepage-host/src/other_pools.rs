//! Pools of other page sizes than a server asks for.

use hugepage_assess::model::{OtherPool, PoolState};
use hugepage_assess::pools;
use hugepage_kernel::PageSize;
use hugepage_kernel::notes::Notes;

use super::compare::Comparison;
use super::context::InspectContext;
use super::identify::ServerIdentity;
use super::inspect::InspectedServer;

/// The first major with `huge_page_size`.
const FIRST_WITH_PAGE_SIZE: u32 = 14;

impl InspectContext<'_> {
    /// What a start with each other page size than `size` would find, of those that have pages or may get some. Empty for Oracle.
    pub(super) fn other_pools(&self, id: &ServerIdentity, size: Option<PageSize>) -> Vec<PoolState> {
        if id.postgresql().is_none() || major(id).is_some_and(|major| major < FIRST_WITH_PAGE_SIZE) {
            return Vec::new();
        }
        let sizes = pools::of_host(&self.pools).filter(|row| row.pool.may_serve()).map(|row| row.pool.page_size);
        let others = sizes.filter(|other| Some(*other) != size);
        // What is unknown of these limits is unknown of the server's own, which has the notes.
        others.map(|other| self.pool_state(id.pid, Some(other), &mut Notes::default())).collect()
    }
}

impl InspectedServer {
    /// The pools of other sizes with what the others lack of them.
    pub(super) fn other_pools(&self, compared: &Comparison<'_>) -> Vec<OtherPool> {
        let pools = self.request.other_pools.iter().cloned();
        let with_lack = |pool_state: PoolState| OtherPool {
            others_lack: compared.lack_of_others(self, pool_state.huge_page_size).map(|(lack, _)| lack),
            can_be_set: major(&self.id).is_some(),
            pool_state,
        };
        pools.map(with_lack).collect()
    }
}

fn major(id: &ServerIdentity) -> Option<u32> {
    id.version.as_ref()?.split('.').next()?.parse().ok()
}
