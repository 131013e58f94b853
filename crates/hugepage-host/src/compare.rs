//! Compares the servers of a host: what they share of memlock and of the pool.

use hugepage_assess::assessment::host::{PoolNeed, others, shares};
use hugepage_assess::model::OtherPool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::inspect::InspectedServer;
use super::pool_needs::{movable, need};
use super::survey::Survey;

/// What the other servers of a host have and lack.
pub(super) struct OtherServers {
    /// The memory in System V segments of huge pages that other instances of the user have.
    pub(super) held_by_user: Bytes,
    /// The pages of the server's pool that the others lack, so that one size of the pool serves all, running or
    /// stopped; `None` where the need of one is unknown.
    pub(super) lack: Option<Pages>,
    /// The pools of other page sizes.
    pub(super) other_pools: Vec<OtherPool>,
}

impl InspectedServer {
    /// What the others of `all` on `host` have and lack.
    pub(super) fn others(&self, all: &[Self], host: &Survey, reserve_percent: u32) -> OtherServers {
        let others = || all.iter().filter(|other| other.id.pid != self.id.pid);
        let uid = self.id.place.uid;
        let of_user = others().filter(|other| uid.is_some() && other.id.place.uid == uid);
        OtherServers {
            held_by_user: of_user.map(Self::held).fold(Bytes(0), Bytes::saturating_add),
            lack: self.lack_of_others(self.request.pool_state.huge_page_size, all, host, reserve_percent),
            other_pools: self.other_pools(all, host, reserve_percent),
        }
    }

    /// The pages of `size` that the others lack, of what fits; `None` where the need of one is unknown.
    pub(super) fn lack_of_others(
        &self,
        size: Option<PageSize>,
        all: &[Self],
        host: &Survey,
        reserve_percent: u32,
    ) -> Option<Pages> {
        let of_size: Vec<_> = all.iter().filter(|other| other.request.pool_state.huge_page_size == size).collect();
        let mut needs: Vec<_> = of_size.iter().map(|server| server.need()).collect();
        if size == host.default_page_size() {
            needs.extend(host.stopped_needs().into_iter().map(|(_, need)| need));
            if host.stopped.iter().any(|stopped| stopped.wants.pages().is_none()) {
                return None;
            }
        }
        let pool = size.and_then(|size| host.pool(size));
        let capacity = pool.and_then(|pool| {
            let movable = of_size.iter().map(|server| movable(&server.request.current_start(), server.lack()));
            host.room(pool, movable.fold(Bytes(0), Bytes::saturating_add), reserve_percent)
        });
        let beside = pool.map_or(Pages(0), |pool| {
            let strangers = host.pages_of_strangers.get(&pool.page_size).map_or(Pages(0), |all| all.pages);
            others(pool, &needs).saturating_sub(strangers)
        });
        let shares = shares(&needs, beside, capacity.map(|room| room.capacity));
        let own = of_size.iter().position(|server| server.id.pid == self.id.pid);
        let of_others = needs.iter().zip(shares).enumerate().filter(|(at, _)| Some(*at) != own);
        let lacks = of_others.map(|(_, (need, (counted, _)))| counted.saturating_sub(need.held));
        Some(lacks.fold(Pages(0), Pages::saturating_add))
    }

    fn need(&self) -> PoolNeed {
        let request = &self.request;
        need(&self.id.name, &request.current_start(), &request.pending, &request.pool_state.pool)
    }

    fn lack(&self) -> Pages {
        self.request.current_start().lack(&self.request.pending, &self.request.pool_state.pool)
    }

    /// The memory in System V segments of huge pages.
    pub(super) fn held(&self) -> Bytes {
        let segment = self.request.segment.as_ref().filter(|_| self.id.oracle().is_some());
        segment.map_or(Bytes(0), |segment| segment.in_huge_pages)
    }
}
