//! Settings of Oracle and limits of its owner that prevent huge pages for the SGA, or make base pages slow.

use hugepage_assess::advice::command::quoted;
use hugepage_assess::advice::message::product::ProductTerms;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::advice::{hint, message, pool};
use hugepage_assess::assessment::{Severity, Sizing, Status};
use hugepage_assess::model::{Cause, HugePages, Landing, PoolFact};
use hugepage_assess::pools::{self, PoolRow};
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::Bytes;
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::proc::rlimit::Rlimit;

use crate::readers::Parameters;
use crate::running::RunningOracle;
use crate::stopped::StoppedOracle;

/// A running instance, with what every server has.
#[derive(Clone, Copy, Debug)]
pub struct AdvisedOracle<'a> {
    /// The SID.
    pub name: &'a str,
    /// The name of its user.
    pub owner: Option<&'a str>,
    /// The systemd service that started it.
    pub service: Option<&'a str>,
    /// The memory that it may lock.
    pub memlock: Option<Rlimit>,
    /// The assessment.
    pub status: &'a Status,
    /// What only an Oracle instance has.
    pub oracle: &'a RunningOracle,
}

impl AdvisedOracle<'_> {
    fn is_in_huge_pages(&self) -> bool {
        self.status.facts.landing() == Landing::Hugetlb
    }
}

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

/// The recommendations for one instance.
pub fn of_instance(instance: &AdvisedOracle<'_>) -> Vec<Recommendation> {
    let parameters = instance.oracle.last_start.as_ref().map(|start| &start.parameters);
    let found = [
        kernel_without(instance),
        automatic_memory(instance, parameters),
        memlock(instance),
        parameters.and_then(|parameters| pre_page_sga(instance, parameters)),
        parameters.and_then(indirect_buffers),
    ];
    found.into_iter().flatten().collect()
}

/// The recommendations for the whole host; none where it has no instance.
pub fn of_host(host: &AdvisedHost<'_>, sizings: &[Sizing]) -> Vec<Recommendation> {
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
        ..make(
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
        ..make(
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
        ..make(
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
        make(
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
        ..make(
            "/dev/shm",
            Some("ramfs".to_owned()),
            Some("tmpfs".to_owned()),
            "A ramfs on /dev/shm is obsolete: it was for indirect buffers on 32-bit Linux, has no size limit, and cannot use \
             huge pages."
                .to_owned(),
        )
    })
}

fn make(setting: &str, current: Option<String>, recommended: Option<String>, reason: String) -> Recommendation {
    Recommendation {
        severity: Severity::Notice,
        area: Area::Oracle,
        setting: setting.to_owned(),
        current,
        recommended,
        reason,
        command: None,
        takes_effect: Effect::ServerRestart,
        saves: None,
    }
}

fn automatic_memory(instance: &AdvisedOracle<'_>, parameters: Option<&Parameters>) -> Option<Recommendation> {
    if instance.status.cause != Some(Cause::MemoryTarget) || instance.status.facts.requested.is_automatic_asm() {
        return None;
    }
    let target = parameters.and_then(|parameters| parameters.get("memory_target")).map(str::to_owned);
    let reason = format!("{} {}", message(instance.status), hint(instance.status).unwrap_or_default());
    Some(Recommendation {
        severity: instance.status.verdict().0,
        command: Some(
            "ALTER SYSTEM RESET memory_target SCOPE=SPFILE; ALTER SYSTEM RESET memory_max_target SCOPE=SPFILE; ALTER SYSTEM \
             SET sga_target = ... SCOPE=SPFILE; ALTER SYSTEM SET pga_aggregate_target = ... SCOPE=SPFILE;"
                .to_owned(),
        ),
        ..make("memory_target", target, Some("0".to_owned()), reason)
    })
}

/// The kernel was built without huge pages (`CONFIG_HUGETLBFS`), or its machine has none.
fn kernel_without(instance: &AdvisedOracle<'_>) -> Option<Recommendation> {
    let facts = &instance.status.facts;
    let has_none = matches!(&facts.pool_state.pool, PoolFact::Unsupported(sizes) if sizes.is_empty());
    let terms = ProductTerms::current(&facts.requested);
    let current = terms.split_once(" = ").map(|(_, value)| value.to_owned());
    let asks = facts.requested.huge_pages != HugePages::Off && !facts.requested.never_in_huge_pages();
    (has_none && asks).then(|| Recommendation {
        severity: instance.status.verdict().0,
        command: Some("ALTER SYSTEM SET use_large_pages = FALSE SCOPE=SPFILE;".to_owned()),
        ..make(
            "use_large_pages",
            current,
            Some("FALSE".to_owned()),
            format!("{} {}", message(instance.status), hint(instance.status).unwrap_or_default()),
        )
    })
}

/// The memlock limit of the instance is below its SGA.
fn memlock(instance: &AdvisedOracle<'_>) -> Option<Recommendation> {
    let segment = instance.status.facts.segment.as_ref()?;
    let Some(Rlimit::At(limit)) = instance.memlock else { return None };
    if limit >= segment.to_reserve || instance.status.cause == Some(Cause::MemoryTarget) {
        return None;
    }
    let wanted = segment.to_reserve.0.div_ceil(1024);
    let owner = instance.owner.filter(|owner| !owner.contains(char::is_whitespace)).unwrap_or("oracle");
    let (command, place) = match instance.service {
        // CRS_LIMIT_MEMLOCK holds for all that the stack starts.
        Some(service) if service.contains("ohasd") => (
            None,
            format!(
                "{service} started it, to which limits.conf does not apply: set CRS_LIMIT_MEMLOCK in \
                 crs/install/s_crsconfig_HOST_env.txt of the Grid Infrastructure home and restart the stack{}",
                instance.oracle.clusterware.as_ref().map_or(String::new(), |grid| {
                    format!(" ({} && {}, as root)", grid.stack("stop"), grid.stack("start"))
                })
            ),
        ),
        Some(service) => (
            Some(format!(
                "mkdir -p /etc/systemd/system/{service}.d && printf '[Service]\\nLimitMEMLOCK={}\\n' > \
                 /etc/systemd/system/{service}.d/memlock.conf && systemctl daemon-reload",
                wanted * 1024
            )),
            format!("{service} started it, to which limits.conf does not apply"),
        ),
        None => (
            Some(format!(
                "echo {} > /etc/security/limits.d/90-oracle-memlock.conf",
                quoted(&format!("{owner} - memlock {wanted}"))
            )),
            "limits.conf(5) has it for new sessions of its owner".to_owned(),
        ),
    };
    Some(Recommendation {
        severity: if instance.is_in_huge_pages() { Severity::Notice } else { Severity::Warning },
        area: Area::Limits,
        command,
        ..make(
            "memlock",
            Some(limit.0.to_string()),
            Some((wanted * 1024).to_string()),
            format!(
                "The memlock limit of {} is {limit}, and its SGA takes {} (MOS 2049901.1); {place}.",
                instance.name, segment.to_reserve
            ),
        )
    })
}

/// On 11.2 with base pages every login touches the whole SGA (2.5 s in place of 0.15 s in one case).
fn pre_page_sga(instance: &AdvisedOracle<'_>, parameters: &Parameters) -> Option<Recommendation> {
    let is_11_2 = instance.oracle.version().is_some_and(|version| version.starts_with("11."));
    let applies = is_11_2 && parameters.flag("pre_page_sga") == Some(true) && !instance.is_in_huge_pages();
    applies.then(|| Recommendation {
        severity: Severity::Warning,
        command: Some("ALTER SYSTEM SET pre_page_sga = FALSE SCOPE=SPFILE;".to_owned()),
        ..make(
            "pre_page_sga",
            Some("TRUE".to_owned()),
            Some("FALSE".to_owned()),
            "With pre_page_sga = TRUE and base pages, 11.2 touches every page of the SGA at each login, which takes seconds."
                .to_owned(),
        )
    })
}

/// A buffer cache on a RAM disk, recommended in 2002 for 32-bit Linux.
fn indirect_buffers(parameters: &Parameters) -> Option<Recommendation> {
    (parameters.flag("use_indirect_data_buffers") == Some(true)).then(|| Recommendation {
        command: Some("ALTER SYSTEM RESET use_indirect_data_buffers SCOPE=SPFILE;".to_owned()),
        ..make(
            "use_indirect_data_buffers",
            Some("TRUE".to_owned()),
            Some("FALSE".to_owned()),
            "Indirect buffers on /dev/shm or ramfs are obsolete: they were for 32-bit Linux and prevent huge pages for the \
             buffer cache."
                .to_owned(),
        )
    })
}
