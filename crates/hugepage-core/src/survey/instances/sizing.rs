//! What the pools of a host should be, for all servers that run and those that are only configured.

use super::look::lack;
use super::{Instance, Survey};
use crate::assess::sizing::{Need, Room, Sizing};
use crate::read::pool::Pool;
use crate::{Bytes, PageSize, Pages};

impl Survey {
    /// A sizing for each page size that anybody needs or that has pages; `down` are servers that do not run. `None` for a
    /// page size means the host's default.
    pub fn sizings(&self, down: &[(Option<PageSize>, Need)], reserve_percent: u32) -> Vec<Sizing> {
        let default = self.meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        let hosts = self.pools.iter().filter(|row| row.node.is_none()).map(|row| &row.pool);
        let sizing = |pool: &Pool| {
            let size = pool.page_size;
            let of_size = |instance: &&Instance| instance.status.facts.huge_page_size == Some(size);
            let running = self.instances.iter().filter(of_size).map(Instance::need);
            let down = down.iter().filter(|(wanted, _)| wanted.or(default) == Some(size)).map(|(_, need)| need.clone());
            let used = pool.nr.saturating_sub(pool.available().unwrap_or(pool.free));
            let room = self.room(size);
            let mut sizing = Sizing::of(size, running.chain(down).collect(), used, room(reserve_percent));
            if self.instances.iter().filter(of_size).any(|instance| instance.status.needed.is_none()) {
                // It has, or wants, pages that can't be seen.
                sizing.recommended = None;
            }
            sizing
        };
        let wanted =
            |sizing: &Sizing| !sizing.needs.is_empty() || sizing.others > Pages(0) || default == Some(sizing.page_size);
        hosts.map(sizing).filter(wanted).collect()
    }

    fn room(&self, size: PageSize) -> impl Fn(u32) -> Option<Room> {
        let hosts = self.pools.iter().filter(|row| row.node.is_none() && row.pool.page_size != size);
        let elsewhere = hosts.fold(Bytes(0), |sum, row| sum.saturating_add(row.pool.page_size.times(row.pool.nr)));
        let mem_total = self.meminfo.as_ref().and_then(|meminfo| meminfo.mem_total);
        move |reserve_percent| Some(Room { mem_total: mem_total?, reserve_percent, elsewhere })
    }
}

impl Instance {
    /// What it needs of the pool of its page size.
    pub fn need(&self) -> Need {
        let facts = &self.status.facts;
        Need {
            name: self.name.clone(),
            pages: facts.own().saturating_add(lack(facts)),
            held: facts.own(),
            is_running: true,
        }
    }
}
