//! /sys/kernel/mm/hugepages: one pool of huge pages for each size, host-wide and for each NUMA node (admin-guide/mm/hugetlbpage).

use serde::{Deserialize, Serialize};

use crate::fields::first_number;
use crate::{Bytes, Meminfo, PageSize, Pages, ReadError, Root, if_there};

const SIZES: &str = "/sys/kernel/mm/hugepages";
const NODES: &str = "/sys/devices/system/node";
const NODES_ONLINE: &str = "/sys/devices/system/node/online";

/// One pool, in pages of `page_size`. `None` for a counter that is not available here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The size of its pages.
    pub page_size: PageSize,
    /// `nr_hugepages`: all pages of the pool, the surplus ones included.
    pub nr: Pages,
    /// `free_hugepages`: untouched pages, reserved ones included.
    pub free: Pages,
    /// `resv_hugepages`: free pages that are reserved for a mapping.
    pub resv: Option<Pages>,
    /// `surplus_hugepages`: pages above the pool's set size; the kernel frees them when their user stops.
    pub surplus: Option<Pages>,
    /// `nr_overcommit_hugepages`: how many surplus pages the kernel may try to add.
    pub overcommit: Option<Pages>,
}

impl Pool {
    /// Free pages without a reservation: those that a new mapping can have. `None` if reservations are unknown.
    pub fn available(&self) -> Option<Pages> {
        Some(self.free.saturating_sub(self.promised()?))
    }

    /// What the pool keeps when its users stop: all but the surplus.
    pub fn persistent(&self) -> Pages {
        self.nr.saturating_sub(self.surplus.unwrap_or_default())
    }

    /// Pages that are touched or reserved. `None` if reservations are unknown.
    pub fn in_use(&self) -> Option<Pages> {
        Some(
            self.nr
                .saturating_sub(self.free)
                .saturating_add(self.promised()?),
        )
    }

    /// Whether the pool has pages, used or not, or may add some.
    pub fn may_serve(&self) -> bool {
        self.nr > Pages(0)
            || self
                .overcommit
                .is_none_or(|overcommit| overcommit > Pages(0))
    }

    /// `resv`, or zero if the pool has no page that could be reserved.
    pub fn promised(&self) -> Option<Pages> {
        self.resv.or((self.nr == Pages(0)).then_some(Pages(0)))
    }
}

/// A pool's share on one NUMA node. The kernel keeps reservations and overcommit only for the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePool {
    /// NUMA node.
    pub node: u32,
    /// The counters; `resv` and `overcommit` are `None`.
    pub pool: Pool,
    /// `MemTotal` of the node; `None` if it was not asked for, or could not be read.
    pub memory: Option<Bytes>,
}

/// The huge page sizes of this kernel and CPU, ascending; empty if the kernel has no huge pages.
pub fn sizes(root: &Root) -> Result<Vec<PageSize>, ReadError> {
    // Without this directory, the existence of its parent shows that there are no huge pages. Without the parent, as
    // where /sys is not mounted or before 2.6.27, nothing is known.
    if !root.exists(SIZES) && root.exists("/sys/kernel/mm") {
        return Ok(Vec::new());
    }
    let mut sizes: Vec<_> = root
        .list(SIZES)?
        .iter()
        .filter_map(|name| PageSize::from_sysfs_name(name))
        .collect();
    sizes.sort_unstable();
    Ok(sizes)
}

/// The host's pool of one size.
pub fn pool(root: &Root, page_size: PageSize) -> Result<Pool, ReadError> {
    read(root, SIZES, page_size)
}

/// The pool of the default size as /proc/meminfo has it, for kernels before 2.6.27 and hosts that hide /sys.
pub fn from_meminfo(meminfo: &Meminfo) -> Option<Pool> {
    Some(Pool {
        page_size: meminfo.huge_page_size?,
        nr: meminfo.huge_pages_total?,
        free: meminfo.huge_pages_free?,
        resv: meminfo.huge_pages_rsvd,
        surplus: meminfo.huge_pages_surp,
        overcommit: None,
    })
}

/// The host's pool of one size, with the counters of one moment where `meminfo` has them all, as it has of the default size;
/// else each counter is a file, and a server that starts between two reads is in one of them alone.
pub fn of_one_moment(
    root: &Root,
    page_size: PageSize,
    meminfo: Option<&Meminfo>,
) -> Result<Pool, ReadError> {
    if let Some(found) = meminfo.and_then(from_meminfo)
        && (
            found.page_size,
            found.resv.is_some(),
            found.surplus.is_some(),
        ) == (page_size, true, true)
        && let Ok(overcommit) = counter(root, page_size, "nr_overcommit_hugepages")
    {
        return Ok(Pool {
            overcommit: Some(overcommit),
            ..found
        });
    }
    pool(root, page_size)
}

/// One counter of the host's pool of one size, such as `free_hugepages`.
pub fn counter(root: &Root, page_size: PageSize, name: &str) -> Result<Pages, ReadError> {
    root.read_number(&format!("{SIZES}/{}/{name}", page_size.sysfs_name()))
        .map(Pages)
}

/// The memory in the pools of all sizes, for kernels before 4.19, whose /proc/meminfo has no line `Hugetlb`.
pub fn memory(root: &Root) -> Result<Bytes, ReadError> {
    sizes(root)?.into_iter().try_fold(Bytes(0), |sum, size| {
        Ok(sum.saturating_add(size.times(pool(root, size)?.nr)))
    })
}

/// The NUMA nodes, ascending; empty on a kernel without them.
pub fn nodes(root: &Root) -> Result<Vec<u32>, ReadError> {
    let names = if_there(root.list(NODES))?.unwrap_or_default();
    let mut nodes: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("node")?.parse().ok())
        .collect();
    nodes.sort_unstable();
    Ok(nodes)
}

/// Whether this running kernel has a single node, by one short file; false for a tree of files, and if it is unknown.
pub fn has_single_node(root: &Root) -> bool {
    let is_number = |text: &str| text.trim().parse::<u32>().is_ok();
    root.is_live() && root.read_short(NODES_ONLINE, is_number).unwrap_or(false)
}

/// The memory of one node (`Node 0 MemTotal:` of its meminfo); `Ok(None)` if it has no such file.
pub fn node_memory(root: &Root, node: u32) -> Result<Option<Bytes>, ReadError> {
    let take = |text: &str| {
        let value = text
            .lines()
            .find_map(|line| line.split_once("MemTotal:"))?
            .1;
        first_number(value.as_bytes()).map(Bytes::from_kib)
    };
    Ok(if_there(root.read_short(&format!("{NODES}/node{node}/meminfo"), take))?.flatten())
}

/// The shares of all NUMA nodes in the pool of one size; empty on a kernel without nodes.
pub fn node_pools(root: &Root, page_size: PageSize) -> Result<Vec<NodePool>, ReadError> {
    let mut pools = Vec::new();
    for node in nodes(root)? {
        let directory = format!("{NODES}/node{node}/hugepages");
        if let Some(pool) = if_there(read(root, &directory, page_size))? {
            pools.push(NodePool {
                node,
                pool,
                memory: None,
            });
        }
    }
    Ok(pools)
}

fn read(root: &Root, directory: &str, page_size: PageSize) -> Result<Pool, ReadError> {
    let directory = format!("{directory}/{}", page_size.sysfs_name());
    let count = |file: &str| root.read_number(&format!("{directory}/{file}")).map(Pages);
    Ok(Pool {
        page_size,
        nr: count("nr_hugepages")?,
        free: count("free_hugepages")?,
        resv: if_there(count("resv_hugepages"))?,
        surplus: if_there(count("surplus_hugepages"))?,
        overcommit: if_there(count("nr_overcommit_hugepages"))?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A server takes 100 pages while the files are read.
    #[test]
    fn counters_of_one_moment() {
        let tree = tempfile::tempdir().unwrap();
        for (size, before) in [(2048, 800), (1_048_576, 4)] {
            let directory = tree
                .path()
                .join(format!("sys/kernel/mm/hugepages/hugepages-{size}kB"));
            fs::create_dir_all(&directory).unwrap();
            for (file, number) in [
                ("nr", before),
                ("free", before),
                ("resv", 0),
                ("surplus", 0),
                ("nr_overcommit", 3),
            ] {
                fs::write(
                    directory.join(format!("{file}_hugepages")),
                    format!("{number}\n"),
                )
                .unwrap();
            }
        }
        let meminfo = Meminfo::parse(
            "Hugepagesize: 2048 kB\nHugePages_Total: 800\nHugePages_Free: 700\nHugePages_Rsvd: 0\nHugePages_Surp: 0\n",
        );
        let root = Root::at(tree.path());
        let free = |kib, meminfo: &Meminfo| {
            let pool =
                of_one_moment(&root, PageSize::from_kib(kib).unwrap(), Some(meminfo)).unwrap();
            assert_eq!(pool.overcommit, Some(Pages(3)));
            pool.free
        };
        assert_eq!(free(2048, &meminfo), Pages(700));
        assert_eq!(
            free(1_048_576, &meminfo),
            Pages(4),
            "meminfo has the default size alone"
        );
        let old = Meminfo {
            huge_pages_surp: None,
            ..meminfo
        };
        assert_eq!(
            free(2048, &old),
            Pages(800),
            "a kernel before 2.6.24 does not show all of them there"
        );
    }
}
