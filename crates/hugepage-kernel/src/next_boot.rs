//! What the next boot gives the huge page pools: two sources and a memory.
//!
//! The sources are sysctl.d, where systemd runs, and a plain `hugepages=` of the kernel's command line. The memory is the pools right
//! after the last boot. What else sets a pool at boot is not looked for: it is remembered, or told by root, or not seen.
//!
//! This opens only regular files that belong to root, in directories that belong to root, and nothing that a file names.

mod pool_at_boot;
mod sources;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::host::{identity, reserve_unit};
use crate::memory::{meminfo::Meminfo, pool, sysctl};
use crate::proc::{namespace, process};
use crate::{Bytes, PageSize, Pages, Root, RootFiles};

pub use self::pool_at_boot::PoolAtBoot;
pub use self::sources::TOLD;
use self::sources::{COMMAND_LINE, Pools, SHM_GROUP};

/// What `apply` leaves until the next boot empties /run: from then on a look does not see the pools of the boot.
pub const APPLIED: &str = "/run/hugepage-sidecar.applied";

/// The files that are opened in all.
const MAX_FILES: usize = 200;
/// The hundredths of memory that pools can have at most: the rest is what the kernel and the first programs of a boot need.
const MAX_PERCENT: u32 = 95;
/// The last second of a boot at which the pools are as the boot made them.
const LAST_SECOND: u64 = 300;

/// What one look saw. The first look after a boot is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootLook {
    /// The kernel's identifier of the boot.
    pub boot_id: String,
    /// /etc/machine-id.
    pub machine_id: String,
    /// The time since the boot.
    pub boot_age_seconds: u64,
    /// The pages of each pool, without surplus ones; none if they were changed since the boot.
    pub pools: BTreeMap<PageSize, Pages>,
    /// What the sources said.
    pub sources: String,
    /// `vm.hugetlb_shm_group`.
    pub shm_group: Option<u64>,
}

impl BootLook {
    /// Whether it came so soon that the pools are those of the boot.
    fn is_of_boot(&self) -> bool {
        self.boot_age_seconds <= LAST_SECOND && !self.boot_id.is_empty() && !self.pools.is_empty()
    }
}

/// What the next boot gives each pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextBoot {
    /// What is seen now.
    pub look: BootLook,
    /// The first look after the last boot; `None` if nobody looked in time, or its sources said something else.
    seen: Option<BootLook>,
    /// Why the first look may have been lost, a clause.
    #[serde(default)]
    damage: Option<String>,
    sources: Result<Pools, String>,
    told: Option<(PageSize, Pages, String)>,
    /// The `vm.hugetlb_shm_group` that sysctl.d sets.
    shm_group: Option<u64>,
    /// What hugepage-reserve.service left in the pools, if every boot starts it, and nobody has taken from them since.
    #[serde(default)]
    made: BTreeMap<PageSize, Pages>,
    has_systemd: bool,
    is_in_container: bool,
}

impl NextBoot {
    /// Reads what sets the pools, without the memory.
    pub fn read(root: &Root) -> Self {
        let mut files = RootFiles::new(root, MAX_FILES);
        let (mut said, mut shm_group) = (Vec::new(), None);
        let has_systemd = root.exists("/run/systemd/system");
        let is_in_container = namespace::shows_files_of_container(root);
        let meminfo = Meminfo::read(root).ok();
        let default = meminfo.as_ref().and_then(|meminfo| meminfo.huge_page_size);
        let mut sources = default
            .ok_or("the default huge page size is unknown".to_owned())
            .and_then(|default| files.pools(default, has_systemd, &mut said, &mut shm_group));
        let told = files.told().unwrap_or_else(|why| {
            sources = Err(why);
            None
        });
        let mut told = default
            .zip(told)
            .map(|(default, (pages, who))| (default, pages, who));
        let mut set = sources.clone().unwrap_or_default();
        // Root's word stands for what sets its pool.
        set.extend(
            told.iter()
                .map(|(size, pages, _)| (*size, (*pages, TOLD.to_owned()))),
        );
        let memory = meminfo.and_then(|meminfo| Some(meminfo.mem_total?.percent(MAX_PERCENT)));
        let mut all = Bytes(0);
        let is_beyond = |(size, (pages, _)): &(&PageSize, &(Pages, String))| {
            all = all.saturating_add(size.times(*pages));
            memory.is_some_and(|memory| all >= memory)
        };
        if let Some((size, (pages, file))) = set.iter().find(is_beyond) {
            let why =
                format!("{file} sets {pages} pages of {size}, which the memory does not hold");
            (sources, told) = (Err(why), None);
        }
        said.extend(
            told.iter()
                .map(|(_, pages, who)| format!("told: {who} sets {pages}")),
        );
        said.extend(sources.as_ref().err().cloned());
        if reserve_unit::is_enabled(root) {
            said.push("hugepage-reserve.service is enabled".to_owned());
        }
        Self {
            look: BootLook {
                sources: said.join("; "),
                ..look(root)
            },
            seen: None,
            damage: None,
            sources,
            told,
            shm_group,
            made: reserve_unit::made(root),
            has_systemd,
            is_in_container,
        }
    }

    /// Adds the memory: the first look after the running boot, among the looks that were recorded, unless some of them may be missing.
    pub fn recall(
        &mut self,
        (looks, damage): (impl IntoIterator<Item = BootLook>, Option<String>),
    ) {
        if damage.is_some() {
            self.made.clear();
        }
        self.damage = damage;
        let of_boot: Vec<_> = looks
            .into_iter()
            .filter(|look| look.boot_id == self.look.boot_id)
            .collect();
        self.made.retain(|size, made| {
            let mut had = of_boot.iter().filter_map(|look| look.pools.get(size));
            had.all(|had| had >= made)
        });
        let mut looks = of_boot.into_iter();
        let first = looks.next();
        // Of the same host, whose sources say the same.
        let now = (&self.look.machine_id, &self.look.sources);
        self.seen =
            first.filter(|look| look.is_of_boot() && (&look.machine_id, &look.sources) == now);
        // What the boot itself took away again.
        for look in looks.filter(BootLook::is_of_boot) {
            for (size, pages) in self.seen.iter_mut().flat_map(|seen| &mut seen.pools) {
                if let Some(later) = look.pools.get(size) {
                    *pages = (*pages).min(*later);
                }
            }
        }
    }

    /// This look, if it is the first after a boot.
    pub fn first_look(&self) -> Option<&BootLook> {
        self.seen.as_ref().filter(|seen| **seen == self.look)
    }

    /// The pool of `size`.
    pub fn pool(&self, size: PageSize) -> PoolAtBoot {
        if self.is_in_container {
            return PoolAtBoot::OfHost;
        }
        let source = self.source(size);
        if let Some(made) = self.made.get(&size) {
            let smaller = match source {
                PoolAtBoot::Set(set, _) | PoolAtBoot::Told(set, _) if set > *made => return source,
                PoolAtBoot::Set(set, file) if set < *made && file != COMMAND_LINE => {
                    Some((set, file))
                }
                _ => None,
            };
            return PoolAtBoot::Made {
                pages: *made,
                smaller,
            };
        }
        let Some(seen) = self.seen.as_ref().filter(|_| self.damage.is_none()) else {
            return source;
        };
        let had = seen.pools.get(&size).copied().unwrap_or_default();
        match source {
            PoolAtBoot::Set(pages, _) | PoolAtBoot::Told(pages, _) if pages == had => source,
            PoolAtBoot::Unseen { .. } if had == Pages(0) => PoolAtBoot::Unset,
            _ => PoolAtBoot::Remembered(had),
        }
    }

    /// `vm.hugetlb_shm_group`: that of sysctl.d or, if it sets none, what the last boot left; else the kernel's own.
    pub fn shm_group(&self) -> Option<u64> {
        let left = || self.seen.as_ref()?.shm_group;
        self.shm_group.or_else(left).or(Some(0))
    }

    /// What is said of the pool of `size`, by root or by the sources.
    fn source(&self, size: PageSize) -> PoolAtBoot {
        match (&self.told, &self.sources) {
            (Some((default, pages, who)), _) if *default == size => {
                PoolAtBoot::Told(*pages, who.clone())
            }
            (_, Err(why)) => PoolAtBoot::Unknown(why.clone()),
            (_, Ok(pools)) => match pools.get(&size) {
                Some((pages, file)) => PoolAtBoot::Set(*pages, file.clone()),
                None => match &self.damage {
                    Some(why) => PoolAtBoot::Unknown(why.clone()),
                    None => PoolAtBoot::Unseen {
                        has_systemd: self.has_systemd,
                    },
                },
            },
        }
    }
}

/// What is seen now, without the sources.
fn look(root: &Root) -> BootLook {
    let sizes = if root.exists(APPLIED) {
        Vec::new()
    } else {
        pool::sizes(root).unwrap_or_default()
    };
    let pages = |size| Some((size, pool::pool(root, size).ok()?.persistent()));
    BootLook {
        boot_id: identity::boot_id(root).ok().flatten().unwrap_or_default(),
        machine_id: identity::machine_id(root),
        boot_age_seconds: process::uptime(root).map_or(u64::MAX, |uptime| uptime.as_secs()),
        pools: sizes.into_iter().filter_map(pages).collect(),
        sources: String::new(),
        shm_group: sysctl::running_number(root, SHM_GROUP),
    }
}

#[cfg(test)]
mod tests;
