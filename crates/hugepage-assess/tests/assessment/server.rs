//! A server and its host, as facts.

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{
    Facts, HugePages, NodePools, PoolFact, PoolState, Product, Requested, Segment,
};
use hugepage_facts::Landing;
use hugepage_kernel::cgroups::cgroup::{CgroupLimit, CgroupLimits};
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::{Bytes, PageSize, Pages};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

/// A server and its host. The default has 1 GB of shared memory in 512 huge pages of 2 MB, as asked and for certain.
#[derive(Clone, Debug)]
pub struct Server {
    pub huge_pages: HugePages,
    pub sysv: bool,
    pub landing: Option<Landing>,
    pub size: u64,
    pub pool: PoolFact,
    pub page_size: Option<PageSize>,
    pub memory: u64,
    pub page_tables: u64,
    pub hugetlb: Option<u64>,
    pub limits: Option<CgroupLimits>,
    pub nodes: Option<NodePools>,
    pub reserve_percent: u32,
    pub available: Option<u64>,
    pub shmem: u64,
    pub sees_others: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            huge_pages: HugePages::Try,
            sysv: false,
            landing: Some(Landing::Hugetlb),
            size: GIB,
            pool: known(pool(512, 512, 512)),
            page_size: Some(page_size(2 * MIB)),
            memory: 16 * GIB,
            page_tables: 64 * MIB,
            hugetlb: None,
            limits: Some(CgroupLimits::default()),
            nodes: None,
            reserve_percent: 20,
            available: None,
            shmem: 0,
            sees_others: true,
        }
    }
}

impl Server {
    /// The same in base pages, with a pool that has none.
    pub fn in_base_pages() -> Self {
        Self {
            landing: Some(Landing::Base),
            pool: known(pool(0, 0, 0)),
            ..Self::default()
        }
    }

    pub fn facts(self) -> Facts {
        let hugetlb = self.landing == Some(Landing::Hugetlb);
        let of_mapping = if hugetlb {
            self.page_size
        } else {
            PageSize::from_kib(4)
        };
        let start = 0x7f00_0000_0000;
        let mapping = Mapping {
            start,
            end: start + self.size,
            inaccessible: Bytes(0),
            shared: true,
            offset: 0,
            device: (0, 1),
            inode: 1028,
            path: if hugetlb {
                "/anon_hugepage (deleted)"
            } else {
                "/dev/zero (deleted)"
            }
            .to_owned(),
            page_size: of_mapping.filter(|_| self.landing != Some(Landing::Unknown)),
        };
        let requested = Requested {
            product: Product::PostgreSql,
            huge_pages: self.huge_pages,
            huge_page_size: None,
            sysv: self.sysv,
            shared_buffers: Bytes(self.size / 8 * 7),
            io_uring: false,
        };
        let pool_state = PoolState {
            huge_page_size: self.page_size,
            pool: self.pool,
            limits: self.limits,
            nodes: self.nodes,
            lock_limit: None,
            base_limits: Vec::new(),
        };
        let meminfo = Meminfo {
            mem_total: Some(Bytes(self.memory)),
            page_tables: Some(Bytes(self.page_tables)),
            hugetlb: self.hugetlb.map(Bytes),
            mem_available: self.available.map(Bytes),
            shmem: Some(Bytes(self.shmem)),
            huge_page_size: Some(page_size(2 * MIB)),
            ..Meminfo::default()
        };
        let segment = self
            .landing
            .map(|landing| Segment::of_mapping(&mapping, landing));
        Facts {
            others_lack: self.sees_others.then_some(Pages(0)),
            ..Facts::new(
                requested,
                segment,
                pool_state,
                Some(meminfo),
                self.reserve_percent,
            )
        }
    }

    pub fn status(self) -> Status {
        Status::assess(self.facts())
    }
}

pub fn page_size(bytes: u64) -> PageSize {
    PageSize::new(bytes).unwrap()
}

/// A pool of 2 MB pages without surplus and overcommit.
pub fn pool(nr: u64, free: u64, resv: u64) -> Pool {
    Pool {
        page_size: page_size(2 * MIB),
        nr: Pages(nr),
        free: Pages(free),
        resv: Some(Pages(resv)),
        surplus: Some(Pages(0)),
        overcommit: Some(Pages(0)),
    }
}

pub fn known(pool: Pool) -> PoolFact {
    PoolFact::Known(pool)
}

pub fn limit(limit: u64, usage: u64) -> CgroupLimit {
    CgroupLimit {
        path: format!("/sys/fs/cgroup/limit_{limit}"),
        limit: Bytes(limit),
        usage: Bytes(usage),
        promised: None,
    }
}

/// Limits checked by mmap(2), all levels seen.
pub fn reservation(limits: &[(u64, u64)]) -> Option<CgroupLimits> {
    let reservation = limits
        .iter()
        .map(|&(bytes, usage)| limit(bytes, usage))
        .collect();
    Some(CgroupLimits {
        reservation,
        ..CgroupLimits::default()
    })
}

/// Limits checked at the first touch, all levels seen.
pub fn fault(limits: &[(u64, u64)]) -> Option<CgroupLimits> {
    Some(CgroupLimits {
        fault: limits
            .iter()
            .map(|&(bytes, usage)| limit(bytes, usage))
            .collect(),
        ..CgroupLimits::default()
    })
}

/// No limits seen, and some levels can't be seen.
pub fn hidden() -> Option<CgroupLimits> {
    Some(CgroupLimits {
        hidden_levels: true,
        ..CgroupLimits::default()
    })
}
