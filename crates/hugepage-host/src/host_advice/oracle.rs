//! Settings of Oracle and limits of its owner that prevent huge pages for the SGA, or make base pages slow.

use hugepage_assess::advice::command::quoted;
use hugepage_assess::advice::message::product::ProductTerms;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::advice::{hint, message, pool};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::model::{Cause, HugePages, PoolFact};
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::Bytes;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_oracle::readers::Parameters;
use hugepage_oracle::running::RunningOracle;

use crate::{Instance, InstanceLanding, Survey};

pub fn rule(instance: &Instance) -> Vec<Recommendation> {
    let Some(oracle) = instance.id.oracle() else { return Vec::new() };
    let parameters = oracle.last_start.as_ref().map(|start| &start.parameters);
    let found = [
        kernel_without(instance),
        automatic_memory(instance, parameters),
        memlock(instance, oracle),
        parameters.and_then(|parameters| pre_page_sga(instance, parameters)),
        parameters.and_then(indirect_buffers),
    ];
    found.into_iter().flatten().collect()
}

/// The running Oracle instances that count.
fn oracles(survey: &Survey) -> impl Iterator<Item = (&Instance, &RunningOracle)> {
    survey.counted().filter_map(|instance| Some((instance, instance.id.oracle()?)))
}

/// Oracle's recommendations for the whole host.
pub fn host_rule(survey: &Survey, sizings: &[Sizing]) -> Vec<Recommendation> {
    if oracles(survey).next().is_none() && survey.stopped.is_empty() {
        return Vec::new();
    }
    let idle = sizings.iter().filter_map(|sizing| idle_pool(survey, sizing));
    idle.chain([large_pools(survey), memory(survey), ramfs(survey), transparent(survey)].into_iter().flatten())
        .collect()
}

/// A pool that no running instance can use, because of MEMORY_TARGET or use_large_pages = FALSE. Without a command: either
/// the setting is wrong or the pool.
fn idle_pool(survey: &Survey, sizing: &Sizing) -> Option<Recommendation> {
    let (size, wanted) = (sizing.page_size, sizing.recommended?);
    let now = survey.pool(size)?.persistent();
    let is_used = sizing.needs.iter().any(|need| need.is_running);
    let is_unknown = survey.stopped.iter().any(|stopped| matches!(stopped.wants, Wants::Unknown(_)))
        || survey.counted().any(|instance| instance.landed().is_hidden());
    if is_used || is_unknown || now <= wanted {
        return None;
    }
    let of = |instance: &Instance| match instance.status.cause {
        Some(Cause::MemoryTarget) => Some(format!("{} (MEMORY_TARGET)", instance.id.name)),
        Some(Cause::Disabled) => Some(format!("{} (use_large_pages = FALSE)", instance.id.name)),
        _ => None,
    };
    let who: Vec<_> = oracles(survey).filter_map(|(instance, _)| of(instance)).collect();
    let unused = size.times(now.saturating_sub(wanted));
    (!who.is_empty()).then(|| Recommendation {
        severity: Severity::Warning,
        area: Area::Kernel,
        takes_effect: Effect::Now,
        saves: Some(unused),
        ..make(
            &pool::setting(size, survey.is_default(size)),
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
fn transparent(survey: &Survey) -> Option<Recommendation> {
    const MADVISE_SINCE: u32 = 23;
    let release = |version: Option<&str>| version?.split('.').next()?.parse::<u32>().ok();
    let stopped = survey.stopped.iter().map(|stopped| stopped.last_start.as_ref()?.version.as_deref());
    let mut releases = oracles(survey).map(|(_, oracle)| release(oracle.version())).chain(stopped.map(release));
    let wanted = if releases.all(|release| release >= Some(MADVISE_SINCE)) { "madvise" } else { "never" };
    (survey.transparent_hugepage.as_deref() == Some("always")).then(|| Recommendation {
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
fn large_pools(survey: &Survey) -> Option<Recommendation> {
    let (total, pools) = (survey.meminfo.as_ref()?.mem_total?, survey.meminfo.as_ref()?.hugetlb?);
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
fn memory(survey: &Survey) -> Option<Recommendation> {
    let total = survey.meminfo.as_ref()?.mem_total?;
    let sum = |of: &dyn Fn(&Instance, &RunningOracle) -> Option<Bytes>| {
        let sizes = oracles(survey).filter_map(|(instance, oracle)| of(instance, oracle));
        sizes.fold(Bytes(0), Bytes::saturating_add)
    };
    let sga = sum(&|instance, _| instance.status.facts.segment_size());
    let mga = sum(&|_, oracle| oracle.managed_global_area);
    // An instance whose limit is unknown adds nothing, so the sum is a lower bound.
    let pga = sum(&|_, oracle| oracle.last_start.as_ref()?.parameters.size("pga_aggregate_limit"));
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

fn ramfs(survey: &Survey) -> Option<Recommendation> {
    survey.shm_is_ramfs.then(|| Recommendation {
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

fn automatic_memory(instance: &Instance, parameters: Option<&Parameters>) -> Option<Recommendation> {
    if instance.status.cause != Some(Cause::MemoryTarget) || instance.status.facts.requested.is_automatic_asm() {
        return None;
    }
    let target = parameters.and_then(|parameters| parameters.get("memory_target")).map(str::to_owned);
    let reason = format!("{} {}", message(&instance.status), hint(&instance.status).unwrap_or_default());
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
fn kernel_without(instance: &Instance) -> Option<Recommendation> {
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
            format!("{} {}", message(&instance.status), hint(&instance.status).unwrap_or_default()),
        )
    })
}

/// The memlock limit of the instance is below its SGA.
fn memlock(instance: &Instance, oracle: &RunningOracle) -> Option<Recommendation> {
    let segment = instance.status.facts.segment.as_ref()?;
    let Some(Rlimit::At(limit)) = instance.memory.memlock?.soft else { return None };
    if limit >= segment.to_reserve || instance.landed() == InstanceLanding::Amm {
        return None;
    }
    let wanted = segment.to_reserve.0.div_ceil(1024);
    let owner = instance.id.owner.as_deref().filter(|owner| !owner.contains(char::is_whitespace)).unwrap_or("oracle");
    let (command, place) = match instance.id.service.as_deref() {
        // CRS_LIMIT_MEMLOCK holds for all that the stack starts.
        Some(service) if service.contains("ohasd") => (
            None,
            format!(
                "{service} started it, to which limits.conf does not apply: set CRS_LIMIT_MEMLOCK in \
                 crs/install/s_crsconfig_HOST_env.txt of the Grid Infrastructure home and restart the stack{}",
                oracle.clusterware.as_ref().map_or(String::new(), |grid| {
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
        severity: if instance.landed() == InstanceLanding::All { Severity::Notice } else { Severity::Warning },
        area: Area::Limits,
        command,
        ..make(
            "memlock",
            Some(limit.0.to_string()),
            Some((wanted * 1024).to_string()),
            format!(
                "The memlock limit of {} is {limit}, and its SGA takes {} (MOS 2049901.1); {place}.",
                instance.id.name, segment.to_reserve
            ),
        )
    })
}

/// On 11.2 with base pages every login touches the whole SGA (2.5 s in place of 0.15 s in one case).
fn pre_page_sga(instance: &Instance, parameters: &Parameters) -> Option<Recommendation> {
    let is_11_2 = instance.id.version.as_deref().is_some_and(|version| version.starts_with("11."));
    let applies = is_11_2 && parameters.flag("pre_page_sga") == Some(true) && instance.landed() != InstanceLanding::All;
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
