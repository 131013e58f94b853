//! Compares the servers of a host: what they share of memlock and of the pool.

use hugepage_assess::model::OtherPool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_oracle::stopped::StoppedOracle;

use super::inspect::InspectedServer;

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
    /// What the others have and lack, of `all` and `stopped`, which ask for pages of the size `default`.
    pub(super) fn others(&self, all: &[Self], stopped: &[StoppedOracle], default: Option<PageSize>) -> OtherServers {
        let others = || all.iter().filter(|other| other.id.pid != self.id.pid);
        let uid = self.id.place.uid;
        let of_user = others().filter(|other| uid.is_some() && other.id.place.uid == uid);
        OtherServers {
            held_by_user: of_user.map(Self::held).fold(Bytes(0), Bytes::saturating_add),
            lack: self.lack_of_others(self.request.pool_state.huge_page_size, all, stopped, default),
            other_pools: self.other_pools(all, stopped, default),
        }
    }

    /// The pages of `size` that the others lack; `None` where the need of one is unknown.
    pub(super) fn lack_of_others(
        &self,
        size: Option<PageSize>,
        all: &[Self],
        stopped: &[StoppedOracle],
        default: Option<PageSize>,
    ) -> Option<Pages> {
        let others = all.iter().filter(|other| other.id.pid != self.id.pid);
        let of_size = others.filter(|other| other.request.pool_state.huge_page_size == size);
        let by_running = of_size.map(Self::lack).fold(Pages(0), Pages::saturating_add);
        let by_stopped = if size == default { lack_of_stopped(stopped) } else { Some(Pages(0)) };
        by_stopped.map(|pages| pages.saturating_add(by_running))
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

fn lack_of_stopped(stopped: &[StoppedOracle]) -> Option<Pages> {
    stopped.iter().try_fold(Pages(0), |sum, stopped| Some(sum.saturating_add(stopped.wants.pages()?)))
}
