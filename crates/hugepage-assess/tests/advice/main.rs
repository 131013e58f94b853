//! Advice: every rule where it speaks and where it is silent, and that no number is more than the host can hold.

mod properties;
mod rules;
mod states;

use hugepage_assess::advice::{self, Recommendation};
use hugepage_assess::assessment::Status;
use hugepage_assess::model::{
    Demand, Facts, HugePages, NodePools, Pending, PoolFact, PoolState, Product, Requested, Segment,
};
use hugepage_facts::{Landing, PageTables};
use hugepage_kernel::cgroups::cgroup::CgroupLimits;
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::memory::pool::Pool;
use hugepage_kernel::next_boot::PoolAtBoot;
use hugepage_kernel::{Bytes, PageSize, Pages};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// One server, with the page tables of its processes.
#[derive(Clone, Debug)]
struct AdviceContext {
    status: Status,
    page_tables: PageTables,
}

fn recommendations(context: &AdviceContext) -> Vec<Recommendation> {
    advice::recommendations(&context.status, &context.page_tables)
}

/// A server on its host. The default is well: 1068 MB of shared memory in 534 huge pages, all that its pool has, now and after the
/// next boot, on a host of 16 GB.
#[derive(Clone, Debug)]
struct Host {
    huge_pages: HugePages,
    sysv: bool,
    huge: bool,
    shared_buffers: u64,
    page_size: PageSize,
    /// nr, free, resv, surplus, overcommit.
    pool: [u64; 5],
    gigantic: [u64; 5],
    memory: u64,
    page_tables: u64,
    limits: CgroupLimits,
    connections: u64,
    at_boot: Option<u64>,
    available: Option<u64>,
    sees_others: bool,
    nodes: Option<NodePools>,
    /// `shared_buffers` of the configuration on disk, where it differs.
    on_disk: Option<u64>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            huge_pages: HugePages::Try,
            sysv: false,
            huge: true,
            shared_buffers: GIB,
            page_size: page_size(2 * MIB),
            pool: [534, 534, 534, 0, 100],
            gigantic: [0; 5],
            memory: 16 * GIB,
            page_tables: 64 * MIB,
            limits: CgroupLimits::default(),
            connections: 100,
            at_boot: Some(534),
            available: None,
            sees_others: true,
            nodes: None,
            on_disk: None,
        }
    }
}

fn page_size(bytes: u64) -> PageSize {
    PageSize::new(bytes).expect("not zero")
}

/// As the server's: a little more than 8 kB for each buffer, in multiples of 8 kB.
fn shared_memory(shared_buffers: u64) -> u64 {
    (shared_buffers / 8192 * 8376 + 20 * MIB).next_multiple_of(8192)
}

fn pool(page_size: PageSize, [nr, free, resv, surplus, overcommit]: [u64; 5]) -> Pool {
    Pool {
        page_size,
        nr: Pages(nr),
        free: Pages(free),
        resv: Some(Pages(resv)),
        surplus: Some(Pages(surplus)),
        overcommit: Some(Pages(overcommit)),
    }
}

impl Host {
    fn context(&self) -> AdviceContext {
        let size = shared_memory(self.shared_buffers);
        let size = if self.huge {
            size.next_multiple_of(self.page_size.bytes().0)
        } else {
            size
        };
        let start = 0x7f00_0000_0000;
        let mapping = Mapping {
            start,
            end: start + size,
            inaccessible: Bytes(0),
            shared: true,
            offset: 0,
            device: (0, 1),
            inode: 7,
            path: String::new(),
            page_size: if self.huge {
                Some(self.page_size)
            } else {
                PageSize::from_kib(4)
            },
        };
        let (huge, gigantic) = (page_size(2 * MIB), page_size(GIB));
        let own = if self.page_size == huge {
            self.pool
        } else {
            self.gigantic
        };
        let pools = [(huge, self.pool), (gigantic, self.gigantic)];
        let hugetlb = pools
            .iter()
            .map(|(size, counters)| size.bytes().0 * counters[0])
            .sum();
        let requested = Requested {
            product: Product::PostgreSql,
            huge_pages: self.huge_pages,
            huge_page_size: (self.page_size != huge).then_some(self.page_size),
            sysv: self.sysv,
            shared_buffers: Bytes(self.shared_buffers),
            io_uring: false,
        };
        let pool_state = PoolState {
            huge_page_size: Some(self.page_size),
            pool: PoolFact::Known(pool(self.page_size, own)),
            limits: Some(self.limits.clone()),
            nodes: self.nodes.clone(),
            lock_limit: None,
            base_limits: Vec::new(),
        };
        let meminfo = Meminfo {
            mem_total: Some(Bytes(self.memory)),
            page_tables: Some(Bytes(self.page_tables)),
            hugetlb: Some(Bytes(hugetlb)),
            huge_page_size: Some(huge),
            mem_available: self.available.map(Bytes),
            shmem: Some(Bytes(self.shared_buffers)),
            ..Meminfo::default()
        };
        let segment = Segment::of_mapping(
            &mapping,
            if self.huge {
                Landing::Hugetlb
            } else {
                Landing::Base
            },
        );
        let pending = self.on_disk.map(|buffers| {
            let requested = Requested {
                shared_buffers: Bytes(buffers),
                ..requested
            };
            let shared_memory = Bytes(shared_memory(buffers));
            Pending::Changed(
                Demand {
                    requested,
                    max_connections: self.connections,
                    shared_memory,
                },
                pool_state.clone(),
            )
        });
        let boot = match self.at_boot {
            Some(pages) => PoolAtBoot::Set(Pages(pages), "/etc/default/grub".to_owned()),
            None => PoolAtBoot::Unset,
        };
        let (other_size, other) = pools[usize::from(self.page_size == huge)];
        let facts = Facts {
            has_other_pools: pool(other_size, other).may_serve(),
            next_boot: Some(boot),
            pending: pending.unwrap_or(Pending::Unchanged),
            others_lack: self.sees_others.then_some(Pages(0)),
            ..Facts::new(requested, Some(segment), pool_state, Some(meminfo), 20)
        };
        AdviceContext {
            status: Status::assess(facts),
            page_tables: PageTables::default(),
        }
    }

    fn recommendations(&self) -> Vec<Recommendation> {
        recommendations(&self.context())
    }
}
