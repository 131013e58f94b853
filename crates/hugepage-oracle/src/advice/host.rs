//! Settings of a host with Oracle instances.

use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::model::Cause;
use hugepage_assess::pools::{self, PoolRow};
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::Bytes;
use hugepage_kernel::memory::meminfo::Meminfo;

use crate::advice::instance::AdvisedOracle;
use crate::advice::recommendation;
use crate::stopped::StoppedOracle;

/// A host with its instances that count.
#[derive(Clone, Debug)]
pub struct AdvisedHost<'a> {
    /// Those that run.
    pub running: Vec<AdvisedOracle<'a>>,
    /// Those that do not.
    pub stopped: &'a [StoppedOracle],
    /// Whether some server, of whatever product, may be in huge pages and does not show it.
    pub hides_pages: bool,
    /// The host's memory.
    pub meminfo: Option<&'a Meminfo>,
    /// All pools.
    pub pools: &'a [PoolRow],
    /// `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<&'a str>,
    /// Whether /dev/shm is a ramfs.
    pub shm_is_ramfs: bool,
}

/// The recommendations for the whole host; none where it has no instance.
pub fn recommendations(host: &AdvisedHost<'_>, sizings: &[Sizing]) -> Vec<Recommendation> {
    if host.running.is_empty() && host.stopped.is_empty() {
        return Vec::new();
    }
    let idle = sizings.iter().filter_map(|sizing| idle_pool(host, sizing));
    idle.chain([large_pools(host), memory(host), ramfs(host), transparent(host)].into_iter().flatten()).collect()
}

/// A pool that no running instance can use, because of MEMORY_TARGET or use_large_pages = FALSE. Without a command: either
/// the setting is wrong or the pool.
fn idle_pool(host: &AdvisedHost<'_>, sizing: &Sizing) -> Option<Recommendation> {
    let (size, wanted) = (sizing.page_size, sizing.recommended?);
    let now = pools::of_size(host.pools, size)?.pool.persistent();
    let is_used = sizing.needs.iter().any(|need| need.is_running);
    let is_unknown = host.hides_pages || host.stopped.iter().any(|stopped| matches!(stopped.wants, Wants::Unknown(_)));
    if is_used || is_unknown || now <= wanted {
        return None;
    }
    let of = |instance: &AdvisedOracle<'_>| match instance.status.cause {
        Some(Cause::MemoryTarget) => Some(format!("{} (MEMORY_TARGET)", instance.name)),
        Some(Cause::Disabled) => Some(format!("{} (use_large_pages = FALSE)", instance.name)),
        _ => None,
    };
    let who: Vec<_> = host.running.iter().filter_map(of).collect();
    let unused = size.times(now.saturating_sub(wanted));
    (!who.is_empty()).then(|| Recommendation {
        severity: Severity::Warning,
        area: Area::Kernel,
        takes_effect: Effect::Now,
        saves: Some(unused),
        ..recommendation(
            &pool::setting(size, host.meminfo.and_then(|meminfo| meminfo.huge_page_size) == Some(size)),
            Some(now.to_string()),
            None,
            format!(
                "{unused} of the pool of {size} pages is unused and cannot be used for anything else: {} cannot use huge pages. \
                 Change that setting, or reduce the pool to {wanted} pages.",
                who.join(", ")
            ),
        )
    })
}

/// Up to 21c the installation guides ask for `never`, since 23ai for `madvise` (Database Installation Guide for Linux,
/// "Restrictions for HugePages and Transparent HugePages Configurations").
fn transparent(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    const MADVISE_SINCE: u32 = 23;
    let release = |version: Option<&str>| version?.split('.').next()?.parse::<u32>().ok();
    let stopped = host.stopped.iter().map(|stopped| stopped.last_start.as_ref()?.version.as_deref());
    let mut releases =
        host.running.iter().map(|instance| release(instance.oracle.version())).chain(stopped.map(release));
    let wanted = if releases.all(|release| release >= Some(MADVISE_SINCE)) { "madvise" } else { "never" };
    (host.transparent_hugepage == Some("always")).then(|| Recommendation {
        area: Area::Kernel,
        takes_effect: Effect::Now,
        command: Some(format!("echo {wanted} > /sys/kernel/mm/transparent_hugepage/enabled")),
        ..recommendation(
            "transparent_hugepage/enabled",
            Some("always".to_owned()),
            Some(wanted.to_owned()),
            format!(
                "Oracle's Installation Guide for Linux asks for {wanted}: with always, processes wait while the kernel makes \
                 transparent huge pages, which the SGA in huge pages does not use; transparent_hugepage={wanted} on the boot \
                 command line keeps it."
            ),
        )
    })
}

/// Oracle's own limit: at most 70% of memory in huge pages.
fn large_pools(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    let (total, pools) = (host.meminfo?.mem_total?, host.meminfo?.hugetlb?);
    (pools > total.percent(70)).then(|| Recommendation {
        area: Area::Kernel,
        takes_effect: Effect::Now,
        ..recommendation(
            "vm.nr_hugepages",
            None,
            None,
            format!(
                "The pools take {pools} of the host's {total}, more than Oracle's maximum of 70%; the rest is too small for PGA \
                 and the operating system."
            ),
        )
    })
}

/// SGA, Managed Global Area and PGA_AGGREGATE_LIMIT of all running instances together exceed memory.
fn memory(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    let total = host.meminfo?.mem_total?;
    let sum = |of: &dyn Fn(&AdvisedOracle<'_>) -> Option<Bytes>| {
        host.running.iter().filter_map(of).fold(Bytes(0), Bytes::saturating_add)
    };
    let sga = sum(&|instance| instance.status.facts.segment_size());
    let mga = sum(&|instance| instance.oracle.managed_global_area);
    // An instance whose limit is unknown adds nothing, so the sum is a lower bound.
    let pga = sum(&|instance| instance.oracle.last_start.as_ref()?.parameters.size("pga_aggregate_limit"));
    let all = sga.saturating_add(mga).saturating_add(pga);
    (pga > Bytes(0) && all > total).then(|| {
        recommendation(
            "pga_aggregate_limit",
            Some(pga.0.to_string()),
            None,
            format!(
                "The running instances may take {all} of the host's {total}: {sga} SGA, {mga} Managed Global Area and {pga} \
                 PGA_AGGREGATE_LIMIT. When PGA grows, the host swaps or kills processes."
            ),
        )
    })
}

fn ramfs(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    host.shm_is_ramfs.then(|| Recommendation {
        severity: Severity::Warning,
        area: Area::Kernel,
        command: Some("umount /dev/shm && mount -t tmpfs tmpfs /dev/shm".to_owned()),
        ..recommendation(
            "/dev/shm",
            Some("ramfs".to_owned()),
            Some("tmpfs".to_owned()),
            "A ramfs on /dev/shm is obsolete: it was for indirect buffers on 32-bit Linux, has no size limit, and cannot use \
             huge pages."
                .to_owned(),
        )
    })
}
