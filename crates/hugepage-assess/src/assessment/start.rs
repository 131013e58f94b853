//! A start of a server: what it asks for, what it finds, and what of the pool it may have.

use hugepage_kernel::{Bytes, Pages};

use crate::model::{CurrentStart, Facts, Pending, PoolFact, PoolState, Requested};

/// A start of a server, once the running one has ended.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The settings.
    pub requested: Requested,
    /// What its mappings take, each of them in whole pages of the pool; `None` if unknown.
    pub size: Option<Bytes>,
    /// The pool, and what limits its use.
    pub pool_state: &'a PoolState,
    /// The pages of that pool that the running server has.
    pub own: Pages,
}

impl<'a> CurrentStart<'a> {
    /// As of [`Facts::start_again`].
    pub(super) fn again(&self) -> Start<'a> {
        Start {
            requested: self.requested,
            size: self.segment.map(|segment| segment.to_reserve),
            pool_state: self.pool_state,
            own: self.own(),
        }
    }

    /// As of [`Facts::start_next`].
    pub(super) fn next(&self, pending: &'a Pending) -> Option<Start<'a>> {
        let again = self.again();
        match pending {
            Pending::Unchanged => Some(again),
            Pending::Changed(demand, pool_state) => {
                let is_same_pool = pool_state.huge_page_size == self.pool_state.huge_page_size;
                Some(Start {
                    requested: demand.requested,
                    size: Some(demand.shared_memory),
                    pool_state,
                    own: if is_same_pool { again.own } else { Pages(0) },
                })
            }
            Pending::Refused(_) | Pending::Unknown => None,
        }
    }
}

impl Facts {
    /// The restart with the running settings, whatever is on disk.
    pub fn start_again(&self) -> Start<'_> {
        self.current_start().again()
    }

    /// The restart with the configuration on disk; `None` if that is refused or unknown.
    pub fn start_next(&self) -> Option<Start<'_>> {
        self.current_start().next(&self.pending)
    }
}

impl Start<'_> {
    /// The pages that it takes; `None` if unknown, or if there are none of that size.
    pub fn needed(&self) -> Option<Pages> {
        let size = self.pool_state.huge_page_size?;
        let is_supported = !matches!(self.pool_state.pool, PoolFact::Unsupported(_));
        self.size
            .filter(|_| is_supported)
            .map(|bytes| size.pages_to_hold(bytes))
    }

    /// The memory that cgroups let it reserve; `None` if no visible limit says.
    pub fn room(&self) -> Option<Bytes> {
        let own = self.pool_state.huge_page_size?.times(self.own);
        let limits = self.pool_state.limits.as_ref()?;
        let rooms = limits
            .reservation
            .iter()
            .map(|limit| limit.room_without(own));
        rooms.min()
    }

    /// [`Start::room`] in pages, as far as limits are visible.
    pub(super) fn allowed(&self) -> Pages {
        let room = self.pool_state.huge_page_size.zip(self.room());
        room.map_or(Pages(u64::MAX), |(page, room)| page.pages_within(room))
    }
}
