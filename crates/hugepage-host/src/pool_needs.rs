//! The pools that a host needs, for all servers that run and those that are only configured.

use std::borrow::Cow;

use hugepage_assess::assessment::capacity::HostMemory;
use hugepage_assess::assessment::host::{PoolNeed, Room, Sizing};
use hugepage_assess::assessment::{Capacity, Status};
use hugepage_assess::model::{Pending, Segment};
use hugepage_assess::pools;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

use super::{Instance, Survey};

impl Survey {
    /// A sizing for each page size that a server needs or that has pages. `down`: servers that do not run; `None` for a
    /// page size means the host's default.
    pub fn sizings(&self, down: &[(Option<PageSize>, PoolNeed)], reserve_percent: u32) -> Vec<Sizing> {
        let default = self.default_page_size();
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| instance.planned().facts.pool_state.huge_page_size == Some(size);
            let running = self.instances.iter().filter(of_size).map(Instance::need);
            let down = down.iter().filter(|(wanted, _)| wanted.or(default) == Some(size)).map(|(_, need)| need.clone());
            let room = self.room(pool, reserve_percent);
            let strangers = self.pages_of_strangers.get(&size).cloned().unwrap_or_default();
            let mut sizing = Sizing::new(pool, running.chain(down).collect(), strangers, room);
            let is_unknown = |instance: &Instance| instance.status.needed.is_none();
            if !self.unread.is_empty() || self.instances.iter().filter(of_size).any(is_unknown) {
                // One has, or wants, pages that are not visible.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted =
            |sizing: &Sizing| !sizing.needs.is_empty() || sizing.others > Pages(0) || default == Some(sizing.page_size);
        pools::of_host(&self.pools).map(|row| sizing(&row.pool)).filter(wanted).collect()
    }

    /// The needs of the Oracle instances that do not run, for [`Survey::sizings`].
    pub fn stopped_needs(&self) -> Vec<(Option<PageSize>, PoolNeed)> {
        self.stopped.iter().filter_map(|stopped| stopped.database().need()).collect()
    }

    fn room(&self, pool: &Pool, reserve_percent: u32) -> Option<Room> {
        let size = pool.page_size;
        let in_base_pages = |instance: &Instance| {
            let facts = &instance.planned().facts;
            let lacks = facts.pool_state.huge_page_size == Some(size) && facts.lack() > Pages(0);
            facts.segment.as_ref().filter(|_| lacks).map_or(Bytes(0), Segment::in_base_pages)
        };
        let movable = self.instances.iter().map(in_base_pages).fold(Bytes(0), Bytes::saturating_add);
        let memory = HostMemory::beside_pool(self.meminfo.as_ref()?, pool, movable, reserve_percent)?;
        let elsewhere = pools::memory(pools::of_host(&self.pools).filter(|row| row.pool.page_size != size));
        let memory = HostMemory { elsewhere, ..memory };
        Some(Room { mem_total: memory.mem_total, elsewhere, capacity: Capacity::of_pool(&memory, pool) })
    }
}

impl Instance {
    /// The status as if the server asked for the page size that its hint tells to set.
    fn planned(&self) -> Cow<'_, Status> {
        self.status.with_planned_page_size().map_or(Cow::Borrowed(&self.status), Cow::Owned)
    }

    /// What it needs of the pool of its page size.
    pub fn need(&self) -> PoolNeed {
        let facts = &self.planned().facts;
        PoolNeed {
            name: self.id.name.clone(),
            pages: facts.own().saturating_add(facts.lack()),
            running: facts
                .own()
                .saturating_add(facts.current_start().lack(&Pending::Unchanged, &facts.pool_state.pool)),
            held: facts.own(),
            is_running: true,
        }
    }
}
