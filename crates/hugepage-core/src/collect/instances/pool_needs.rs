//! The pools that a host needs, for all servers that run and those that are only configured.

use super::{Instance, Survey};
use crate::assess::host::{PoolNeed, Room, Sizing};
use crate::collect::pools;
use crate::read::pool::Pool;
use crate::{PageSize, Pages};

impl Survey {
    /// A sizing for each page size that a server needs or that has pages. `down`: servers that do not run; `None` for a
    /// page size means the host's default.
    pub fn sizings(&self, down: &[(Option<PageSize>, PoolNeed)], reserve_percent: u32) -> Vec<Sizing> {
        let default = self.default_page_size();
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| instance.status.facts.huge_page_size == Some(size);
            let running = self.counted().filter(of_size).map(Instance::need);
            let down = down.iter().filter(|(wanted, _)| wanted.or(default) == Some(size)).map(|(_, need)| need.clone());
            let used = pool.in_use().unwrap_or(pool.nr.saturating_sub(pool.free));
            let room = self.room(size, reserve_percent);
            let mut sizing = Sizing::of(size, running.chain(down).collect(), used, room);
            if self.counted().filter(of_size).any(|instance| instance.status.needed.is_none()) {
                // It has, or wants, pages that are not visible.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted =
            |sizing: &Sizing| !sizing.needs.is_empty() || sizing.others > Pages(0) || default == Some(sizing.page_size);
        pools::of_host(&self.pools).map(|row| sizing(&row.pool)).filter(wanted).collect()
    }

    fn room(&self, size: PageSize, reserve_percent: u32) -> Option<Room> {
        let elsewhere = pools::memory(pools::of_host(&self.pools).filter(|row| row.pool.page_size != size));
        Some(Room { mem_total: self.meminfo.as_ref()?.mem_total?, reserve_percent, elsewhere })
    }
}

impl Instance {
    /// What it needs of the pool of its page size.
    pub fn need(&self) -> PoolNeed {
        let facts = &self.status.facts;
        PoolNeed {
            name: self.name.clone(),
            pages: facts.own().saturating_add(facts.lack()),
            held: facts.own(),
            is_running: true,
        }
    }
}
