//! What sentences are made of: the quantities and noun phrases of one status, and what a start lacks to be in huge pages.

use hugepage_facts::{Cause, Landing};
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::advice::message::ProductTerms;
use crate::assessment::{Danger, Forecast, Status};
use crate::model::{Facts, HugePages, LockLimit, NodePools, PoolFact, PoolState, Product};

/// Why it is unknown what a start with io_uring gets: a clause.
pub const OF_RINGS: &str = "with io_method = io_uring old rings may keep huge pages until the server stops, and the kernel may refuse \
                            new ones (RLIMIT_MEMLOCK, RLIMIT_NOFILE, kernel.io_uring_disabled)";

/// The text of one status.
pub struct StatusText<'a> {
    pub status: &'a Status,
    pub facts: &'a Facts,
    pub terms: &'static ProductTerms,
}

impl<'a> StatusText<'a> {
    pub const fn new(status: &'a Status) -> Self {
        let facts = &status.facts;
        Self {
            status,
            facts,
            terms: ProductTerms::of_product(facts.requested.product),
        }
    }

    /// Behind a clause on the next start.
    pub fn next_start(&self) -> &'static str {
        if self.status.crash.outlook == self.status.forecast.outlook {
            self.terms.next_start
        } else {
            ""
        }
    }

    /// The setting, as the administrator wrote it.
    pub fn setting(&self) -> &'static str {
        ProductTerms::current(&self.facts.requested)
    }

    pub fn memory(&self) -> String {
        format!(
            "{} ({})",
            self.terms.memory,
            self.facts.segment_size().unwrap_or_default()
        )
    }

    pub fn needed(&self) -> Pages {
        self.status.crash.needed.unwrap_or_default()
    }

    pub fn needed_bytes(&self) -> Option<Bytes> {
        let size = self.facts.pool_state.huge_page_size?;
        Some(size.times(self.status.crash.needed?))
    }

    pub fn page_size(&self) -> String {
        page_size(self.facts.pool_state.huge_page_size)
    }

    pub fn huge_pages(&self) -> String {
        format!("{} huge pages of {}", self.needed(), self.page_size())
    }

    /// The pages of a segment that is not, or not completely, in huge pages.
    pub fn base_pages(&self) -> String {
        let requested = match self.facts.requested.huge_pages {
            HugePages::Off => "",
            _ => " although huge pages were asked for",
        };
        match (&self.facts.segment, self.facts.page_size()) {
            (Some(segment), _) if segment.landing == Landing::Mixed => {
                let (huge, base) = (segment.in_huge_pages, segment.in_base_pages());
                format!("huge pages for {huge}, in base pages for the other {base}{requested}")
            }
            (Some(segment), _) if segment.landing == Landing::Thp => {
                format!("transparent huge pages{requested}")
            }
            (Some(segment), Some(size)) if segment.landing == Landing::PartialThp => {
                format!("{size} pages and in transparent huge pages{requested}")
            }
            (_, Some(size)) => format!("{size} pages{requested}"),
            (_, None) => format!("base pages{requested}"),
        }
    }

    pub fn current_pages(&self) -> String {
        if self.status.cause.is_none() {
            self.huge_pages()
        } else {
            self.base_pages()
        }
    }

    /// Whether a start would land in huge pages now, though the last one did not.
    pub fn could_land_now(&self) -> bool {
        use Cause::{Disabled, MemoryTarget, PageSizeUnsupported, SysvSharedMemory};
        let is_of_host = !matches!(
            self.status.cause,
            None | Some(Disabled | MemoryTarget | SysvSharedMemory | PageSizeUnsupported)
        );
        let lock = self.facts.pool_state.lock_limit.zip(self.needed_bytes());
        is_of_host
            && self.status.missing == Some(Pages(0))
            && !lock.is_some_and(|(lock, needed)| lock.refuses(needed) || lock.may_refuse(needed))
    }
}

/// Whether a larger pool removes `cause`.
pub const fn is_of_pool(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken
    )
}

pub fn page_size(size: Option<PageSize>) -> String {
    size.map_or("unknown size".to_owned(), |size| size.to_string())
}

/// What a start lacks to be in huge pages, as a clause. `pool_state`: what it finds; `None` if that was not read.
pub fn shortfall(forecast: &Forecast, pool_state: Option<&PoolState>, product: Product) -> String {
    if let Some(danger) = forecast.obstacle() {
        return obstacle(danger);
    }
    if forecast.depends_on_rings {
        return OF_RINGS.to_owned();
    }
    let Forecast {
        cause,
        huge_page_size,
        needed,
        guaranteed,
        ..
    } = *forecast;
    let (size, needed, guaranteed) = (
        page_size(huge_page_size),
        needed.unwrap_or_default(),
        guaranteed.unwrap_or_default(),
    );
    let text = match (cause, pool_state.map(|found| &found.pool)) {
        (None, _) => "no page is missing",
        (Some(Cause::Disabled), _) => ProductTerms::of_product(product).setting(HugePages::Off),
        (Some(Cause::MemoryTarget), _) => {
            "MEMORY_TARGET puts the SGA into files in /dev/shm, which cannot use huge pages"
        }
        (Some(Cause::SysvSharedMemory), _) => {
            "PostgreSQL does not use huge pages with shared_memory_type = sysv"
        }
        (Some(Cause::PageSizeUnsupported), Some(PoolFact::Unsupported(sizes)))
            if sizes.is_empty() =>
        {
            "this kernel has no huge pages"
        }
        (Some(Cause::PageSizeUnsupported), Some(PoolFact::Unsupported(sizes))) => {
            let sizes: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
            return format!(
                "this machine has no pages of {size}, only of {}",
                sizes.join(", ")
            );
        }
        (Some(Cause::PageSizeUnsupported), _) => "this machine has no huge pages of huge_page_size",
        (Some(Cause::CgroupLimit), _) => {
            return format!(
                "a cgroup allows only {guaranteed} of the {needed} pages of {size} needed"
            );
        }
        (Some(Cause::NodeLimit), _) => {
            let nodes = pool_state
                .and_then(|found| found.nodes.as_ref())
                .map(by_node)
                .unwrap_or_default();
            return format!(
                "the NUMA nodes that it may use have only {guaranteed} of the {needed} pages of {size} needed{nodes}"
            );
        }
        (Some(Cause::PoolEmpty | Cause::PoolTooSmall | Cause::PoolTaken), _) => {
            let s = if needed == Pages(1) { "" } else { "s" };
            return format!(
                "only {guaranteed} of the {needed} page{s} of {size} needed are guaranteed"
            );
        }
        (Some(cause), _) => {
            let needed = huge_page_size.map_or(Bytes(0), |size| size.times(needed));
            return of_permission(cause, pool_state.and_then(|found| found.lock_limit), needed);
        }
    };
    text.to_owned()
}

/// What stops a start, or may stop it, as a clause.
pub fn obstacle(danger: &Danger) -> String {
    let Danger {
        name,
        allowed,
        size,
        ..
    } = danger;
    match (danger.is_signal, danger.is_certain) {
        (false, is_certain) => {
            let grants = if is_certain {
                "does not grant"
            } else {
                "may not grant"
            };
            format!(
                "the kernel {grants} {size} of shared memory in base pages, only {allowed} for certain: {name}"
            )
        }
        (true, true) => format!(
            "it touches more huge pages than the {allowed} that {name} allows, and is killed by SIGBUS"
        ),
        (true, false) => format!(
            "it may start, and is killed by SIGBUS when it touches more of its {size} in huge pages than the {allowed} that {name} allows"
        ),
    }
}

/// The permission for System V segments that a start lacks, or may lack.
pub fn of_permission(cause: Cause, lock_limit: Option<LockLimit>, needed: Bytes) -> String {
    match (cause, lock_limit) {
        (Cause::ShmGroup, _) => "its owner is not in the group of vm.hugetlb_shm_group".to_owned(),
        (Cause::ShmLimit, Some(LockLimit::Shmall { limit, others, .. })) => {
            let others = if others > Bytes(0) { format!(", and others have {others}") } else { String::new() };
            format!("kernel.shmall allows {limit} of System V shared memory in all, huge pages included{others}")
        }
        (Cause::ShmLimit, Some(LockLimit::Shmmni { limit })) => {
            format!("kernel.shmmni allows {limit} shared memory segments")
        }
        (Cause::ShmLimit, _) => "the kernel allows no more System V shared memory".to_owned(),
        (Cause::MemlockLimit, lock_limit) => {
            let (limit, others) = match lock_limit {
                Some(LockLimit::Memlock { limit, others }) => (limit, others),
                Some(LockLimit::Either { limit: Some(limit), .. }) => (limit, Bytes(0)),
                _ => (Bytes(0), Bytes(0)),
            };
            let beside = (others > Bytes(0)).then(|| format!(", beside {others} of other instances of its owner"));
            let is_close = limit.to_string() == needed.to_string();
            let shown = |size: Bytes| if is_close { format!("{} kB", size.0 / 1024) } else { size.to_string() };
            let (limit, needed, beside) = (shown(limit), shown(needed), beside.unwrap_or_default());
            format!("its memlock limit is {limit}; {needed} is needed{beside}")
        }
        (_, Some(LockLimit::Either { .. })) => {
            "if this distribution's kernel has the change of Linux 5.18, its owner must be in \
                                                the group of vm.hugetlb_shm_group, else memlock is enough"
                .to_owned()
        }
        (_, Some(LockLimit::Unexplained)) => "the kernel may refuse them to its owner".to_owned(),
        _ => "the number of available pages is unknown".to_owned(),
    }
}

/// The figures of each node, of the usable ones first: ` (node 0: 0 of 0 free; not allowed: node 1: 200 of 200 free)`.
fn by_node(nodes: &NodePools) -> String {
    let usable: Vec<_> = nodes.usable().iter().map(|share| share.node).collect();
    let list = |is_usable: bool| {
        let shares = nodes
            .pools
            .iter()
            .filter(|share| usable.contains(&share.node) == is_usable);
        let figures = shares.map(|share| {
            format!(
                "node {}: {} of {} free",
                share.node, share.pool.free, share.pool.nr
            )
        });
        figures.collect::<Vec<_>>().join(", ")
    };
    format!(" ({}; not allowed: {})", list(true), list(false))
}
