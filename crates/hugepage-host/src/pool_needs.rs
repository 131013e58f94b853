//! What the servers of a host need of its pools, those that run and those that are only configured, and what they take from each other.

use std::cell::RefCell;
use std::collections::BTreeMap;

use hugepage_assess::assessment::Capacity;
use hugepage_assess::assessment::capacity::HostMemory;
use hugepage_assess::model::{CurrentStart, Pending, PoolFact, Segment};
use hugepage_assess::pools;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_sizing::{PoolNeed, Sizing};

use super::inspect::InspectedServer;
use super::snapshot::HostFacts;

/// The servers of a host beside each other. The sizing of a pool is made once: of a user's servers there may be thousands.
pub(super) struct Comparison<'a> {
    all: &'a [InspectedServer],
    pub(super) host: &'a HostFacts,
    pub(super) reserve_percent: u32,
    by_size: RefCell<BTreeMap<Option<PageSize>, Option<Lacks>>>,
}

/// What the servers that need pages of one size lack of what fits, and what they ask for beyond it: all and each.
#[derive(Default)]
struct Lacks {
    all: (Pages, Pages),
    each: Vec<(PoolNeed, (Pages, Pages))>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(all: &'a [InspectedServer], host: &'a HostFacts, reserve_percent: u32) -> Self {
        Self { all, host, reserve_percent, by_size: RefCell::default() }
    }

    fn others_than(&self, one: &InspectedServer) -> impl Iterator<Item = &InspectedServer> {
        self.all.iter().filter(move |other| other.id.pid != one.id.pid)
    }

    /// The memory in System V segments of huge pages that other instances of the same user have.
    pub(super) fn held_by_user(&self, one: &InspectedServer) -> Bytes {
        let uid = one.id.place.uid;
        let of_user = self.others_than(one).filter(|other| uid.is_some() && other.id.place.uid == uid);
        of_user.map(InspectedServer::held).fold(Bytes(0), Bytes::saturating_add)
    }

    /// Whether another server may ask for more next than is known.
    pub(super) fn may_ask_for_more_than(&self, one: &InspectedServer) -> bool {
        self.others_than(one).any(|other| other.request.pending == Pending::Unknown)
    }

    /// The pages of `size` that the others than `one` lack, of what fits and beyond it; `None` if the need of one is unknown.
    pub(super) fn lack_of_others(&self, one: &InspectedServer, size: Option<PageSize>) -> Option<(Pages, Pages)> {
        let mut by_size = self.by_size.borrow_mut();
        let Lacks { all, each } = by_size.entry(size).or_insert_with(|| self.lacks(size)).as_ref()?;
        let own = one.need();
        let (lack, beyond) = each.iter().find(|(need, _)| *need == own).map(|(_, its)| *its).unwrap_or_default();
        Some((all.0.saturating_sub(lack), all.1.saturating_sub(beyond)))
    }

    fn lacks(&self, size: Option<PageSize>) -> Option<Lacks> {
        let of_size = self.all.iter().filter(|other| other.request.pool_state.huge_page_size == size);
        let mut needs: Vec<_> = of_size.map(InspectedServer::need).collect();
        if size == self.host.default_page_size() {
            if self.host.stopped.iter().any(|stopped| stopped.wants.pages().is_none()) {
                return None;
            }
            needs.extend(self.host.stopped_needs().into_iter().map(|(_, need)| need));
        }
        let Some(pool) = size.and_then(|size| self.host.pool(size)) else { return Some(Lacks::default()) };
        let sizing = self.host.sizing(pool, needs, self.reserve_percent);
        let mut lacks = Lacks::default();
        for need in &sizing.needs {
            let counted = sizing.counted(need);
            let its = (counted.saturating_sub(need.held), need.pages.saturating_sub(counted));
            lacks.all = (lacks.all.0.saturating_add(its.0), lacks.all.1.saturating_add(its.1));
            lacks.each.push((need.clone(), its));
        }
        Some(lacks)
    }
}

impl InspectedServer {
    fn need(&self) -> PoolNeed {
        let request = &self.request;
        need(&self.id.name, &request.current_start(), &request.pending, &request.pool_state.pool)
    }

    /// The memory in System V segments of huge pages.
    pub(super) fn held(&self) -> Bytes {
        let segment = self.request.segment.as_ref().filter(|_| self.id.oracle().is_some());
        segment.map_or(Bytes(0), |segment| segment.in_huge_pages)
    }
}

impl HostFacts {
    /// The needs of the Oracle instances that do not run.
    pub(super) fn stopped_needs(&self) -> Vec<(Option<PageSize>, PoolNeed)> {
        self.stopped.iter().filter_map(|stopped| stopped.database().need()).collect()
    }

    /// The sizing of `pool` for servers with `needs`.
    pub(super) fn sizing(&self, pool: &Pool, needs: Vec<PoolNeed>, reserve_percent: u32) -> Sizing {
        let movable = needs.iter().map(|need| need.movable).fold(Bytes(0), Bytes::saturating_add);
        let elsewhere = pools::memory(pools::of_host(&self.pools).filter(|row| row.pool.page_size != pool.page_size));
        let meminfo = self.meminfo.as_ref();
        let memory = meminfo.and_then(|meminfo| HostMemory::beside_pool(meminfo, pool, movable, reserve_percent));
        let capacity = memory.map(|memory| Capacity::of_pool(&HostMemory { elsewhere, ..memory }, pool));
        let strangers = self.pages_of_strangers.get(&pool.page_size).cloned().unwrap_or_default();
        Sizing::new(pool, needs, strangers, capacity)
    }
}

/// What a running server needs of `pool`.
pub(super) fn need(name: &str, current: &CurrentStart<'_>, pending: &Pending, pool: &PoolFact) -> PoolNeed {
    let held = current.own();
    let with = |pending: &Pending| held.saturating_add(current.lack(pending, pool));
    let (pages, running) = (with(pending), with(&Pending::Unchanged));
    let movable = current.segment.filter(|_| pages > held).map_or(Bytes(0), Segment::in_base_pages);
    PoolNeed { name: name.to_owned(), pages, running, held, movable, is_running: true }
}
