//! Settings of a host with Oracle instances.

use hugepage_assess::advice::message::product::ProductTerms;
use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::model::{Cause, Landing, Product, UseLargePages};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::Bytes;
use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::memory::meminfo::Meminfo;

use crate::advice::instance::AdvisedOracle;
use crate::advice::recommendation;
use crate::readers::OracleKind;
use crate::stopped::StoppedOracle;

/// A host with its instances that count.
#[derive(Clone, Debug)]
pub struct AdvisedHost<'a> {
    /// The instances that run.
    pub running: Vec<AdvisedOracle<'a>>,
    /// The instances that do not run.
    pub stopped: &'a [StoppedOracle],
    /// Whether some server, of whatever product, may be in huge pages and does not show it.
    pub hides_pages: bool,
    /// The host's memory.
    pub meminfo: Option<&'a Meminfo>,
    /// All pools.
    pub pools: &'a [PoolRow],
    /// `transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<&'a str>,
    /// Whether it is a database server of Exadata.
    pub is_exadata: bool,
    /// The release of the kernel that runs.
    pub kernel_release: Option<&'a str>,
}

/// The recommendations for the whole host; none if it has no instance.
pub fn recommendations(host: &AdvisedHost<'_>, sizings: &[Sizing]) -> Vec<Recommendation> {
    if host.running.is_empty() && host.stopped.is_empty() {
        return Vec::new();
    }
    let idle = sizings.iter().filter_map(|sizing| idle_pool(host, sizing));
    idle.chain([large_pools(host), memory(host), transparent(host), small_pages_on_exadata(host)].into_iter().flatten())
        .collect()
}

/// A pool that no running instance can use. Without a command: either the setting is wrong or the pool.
fn idle_pool(host: &AdvisedHost<'_>, sizing: &Sizing) -> Option<Recommendation> {
    let (size, wanted) = (sizing.page_size, sizing.recommended.map(|_| sizing.total)?);
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
        saving: Some(unused),
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

/// What the installation guides ask of transparent huge pages on this host, and the guide. They decide by the kernel since they
/// know UEK7: `madvise` there, for 19c and later, and `never` on earlier UEK ("Setting Transparent HugePages to madvise" in the
/// Client Installation Guides for 21c and 23ai). Of other kernels earlier text holds: `never` up to 21c, `madvise` since 23ai.
fn thp_of_guides(host: &AdvisedHost<'_>) -> (&'static str, &'static str) {
    const UEK7: (u32, u32) = (5, 15);
    let release = |version: Option<&str>| version?.split('.').next()?.parse::<u32>().ok();
    let stopped = host.stopped.iter().map(|stopped| stopped.last_start.as_ref()?.version.as_deref());
    let running = host.running.iter().map(|instance| instance.oracle.version());
    let mut releases = running.chain(stopped).map(release);
    let uek = host.kernel_release.filter(|release| release.contains("uek")).and_then(KernelRelease::parse);
    match uek.map(|release| (release.major, release.minor) >= UEK7) {
        Some(true) if releases.all(|release| release.is_none_or(|release| release >= 19)) => {
            ("madvise", "Oracle's installation guides ask for madvise on UEK7 and later kernels")
        }
        Some(_) => {
            ("never", "Oracle's installation guides ask for never on UEK before UEK7, and for releases before 19c")
        }
        None if releases.all(|release| release >= Some(23)) => {
            ("madvise", "Oracle's installation guides since 23ai ask for madvise")
        }
        None => ("never", "Oracle's installation guides up to 21c ask for never on kernels that are not UEK7 or later"),
    }
}

fn transparent(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    let (wanted, source) = thp_of_guides(host);
    (host.transparent_hugepage == Some("always")).then(|| Recommendation {
        area: Area::Kernel,
        takes_effect: Effect::Now,
        command: Some(format!("echo {wanted} > /sys/kernel/mm/transparent_hugepage/enabled")),
        ..recommendation(
            "transparent_hugepage/enabled",
            Some("always".to_owned()),
            Some(wanted.to_owned()),
            format!(
                "{source}: with always, processes wait while the kernel makes transparent huge pages, which the SGA in huge \
                 pages does not use; transparent_hugepage={wanted} on the boot command line keeps it."
            ),
        )
    })
}

/// Since the release updates of April 2025, 19.27 and 23.8, a database on Exadata does not start with an SGA in small pages
/// (MOS 3081878.1). The recommendation names databases of earlier ones that would not start.
fn small_pages_on_exadata(host: &AdvisedHost<'_>) -> Option<Recommendation> {
    let is_earlier = |version: Option<&str>| {
        let mut numbers =
            version.into_iter().flat_map(|version| version.split('.')).map_while(|part| part.parse().ok());
        matches!((numbers.next(), numbers.next()), (Some(19), Some(0..27)) | (Some(23), Some(0..8)))
    };
    let of_running = |instance: &AdvisedOracle<'_>| {
        let facts = &instance.status.facts;
        let why = match facts.requested.product {
            Product::Oracle { use_large_pages: Some(UseLargePages::Only | UseLargePages::AutoOnly), .. } => {
                return None;
            }
            Product::Oracle { use_large_pages: Some(_), .. } => ProductTerms::current(&facts.requested),
            _ if matches!(facts.landing(), Landing::Mixed | Landing::Base) => "in small pages",
            _ => return None,
        };
        let is_told = instance.oracle.kind == OracleKind::Database && is_earlier(instance.oracle.version());
        is_told.then(|| format!("{} ({why})", instance.name))
    };
    let of_stopped = |stopped: &StoppedOracle| {
        let version = stopped.last_start.as_ref().and_then(|start| start.version.as_deref());
        let setting =
            stopped.use_large_pages.as_deref().filter(|setting| matches!(*setting, "TRUE" | "FALSE" | "AUTO"))?;
        let is_told = stopped.kind == OracleKind::Database && is_earlier(version);
        is_told.then(|| format!("{} (use_large_pages = {setting})", stopped.name))
    };
    let running = host.running.iter().filter_map(of_running);
    let who: Vec<_> = running.chain(host.stopped.iter().filter_map(of_stopped)).collect();
    (host.is_exadata && !who.is_empty()).then(|| {
        recommendation(
            "use_large_pages",
            None,
            Some("ONLY".to_owned()),
            format!(
                "Since release updates 19.27 and 23.8 no database on Exadata starts with an SGA in small pages (MOS 3081878.1): {}. \
                 Before that patch, set ONLY or AUTO_ONLY and provide the pages.",
                who.join(", ")
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
    let pga = sum(&|instance| instance.oracle.pga_aggregate_limit());
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
