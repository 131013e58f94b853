//! The pools that a host needs, for all servers that run and those that are only configured.

use std::borrow::Cow;

use hugepage_assess::assessment::capacity::HostMemory;
use hugepage_assess::assessment::{Capacity, Status};
use hugepage_assess::model::{HugePages, Pending};
use hugepage_assess::pools;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_sizing::{PoolNeed, Sizing};

use super::compare::need;
use super::{HostFacts, Instance, Survey};

impl Survey {
    /// The sizings for the servers that run and the Oracle instances that do not.
    pub fn sizings(&self) -> Vec<Sizing> {
        self.sizings_beside(&self.host.stopped_needs())
    }

    /// A sizing for each page size that a server needs or that has pages. `down`: servers that do not run.
    pub fn sizings_beside(&self, down: &[(Option<PageSize>, PoolNeed)]) -> Vec<Sizing> {
        let default = self.host.default_page_size();
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| instance.planned().facts.pool_state.huge_page_size == Some(size);
            let running = self.instances.iter().filter(of_size).map(Instance::need);
            let down = down.iter().filter(|(wanted, _)| wanted.or(default) == Some(size)).map(|(_, need)| need.clone());
            let next = self.instances.iter().filter_map(|instance| instance.need_next(size));
            let mut sizing = self.host.sizing(pool, running.chain(next).chain(down).collect(), self.reserve_percent);
            let is_unknown = |instance: &Instance| instance.status.needed.is_none();
            if !self.host.unread.is_empty() || self.instances.iter().filter(of_size).any(is_unknown) {
                // One has, or wants, pages that are not visible.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted =
            |sizing: &Sizing| !sizing.needs.is_empty() || sizing.others > Pages(0) || default == Some(sizing.page_size);
        pools::of_host(&self.host.pools).map(|row| sizing(&row.pool)).filter(wanted).collect()
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

impl Instance {
    /// The status as if the server asked for the page size that its hint tells to set.
    fn planned(&self) -> Cow<'_, Status> {
        self.status.with_planned_page_size().map_or(Cow::Borrowed(&self.status), Cow::Owned)
    }

    /// What its next start needs of pages of `size`, if it runs with others.
    fn need_next(&self, size: PageSize) -> Option<PoolNeed> {
        let facts = &self.planned().facts;
        let Pending::Changed(demand, pool_state) = &facts.pending else { return None };
        let is_other = pool_state.huge_page_size == Some(size) && facts.pool_state.huge_page_size != Some(size);
        let asks = demand.requested.huge_pages != HugePages::Off && !demand.requested.never_in_huge_pages();
        (is_other && asks).then(|| PoolNeed {
            name: self.id.name.clone(),
            is_running: true,
            pages: size.pages_to_hold(demand.shared_memory),
            running: Pages(0),
            held: Pages(0),
            movable: Bytes(0),
        })
    }

    /// A note on the size of the pages in which it counts, if that is not the one that it asks for.
    pub fn note_on_size(&self) -> Option<String> {
        let size = self.status.with_planned_page_size()?.facts.requested_next().huge_page_size?;
        Some(format!("{} counts in pages of {size}, as its hint in `hugepage-sidecar status` advises", self.id.name))
    }

    /// What it needs of the pool of its page size.
    pub fn need(&self) -> PoolNeed {
        let facts = &self.planned().facts;
        need(&self.id.name, &facts.current_start(), &facts.pending, &facts.pool_state.pool)
    }
}
