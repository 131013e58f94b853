//! Settings of Oracle and limits of its owner that prevent huge pages for the SGA, or make base pages slow.

use crate::advise::command::quoted;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::advise::{hint, message};
use crate::assess::Severity;
use crate::collect::instances::{Instance, InstanceKind, InstanceLanding, Survey};
use crate::model::Cause;
use crate::read::oracle::Parameters;
use crate::read::rlimit::Rlimit;

pub fn rule(instance: &Instance) -> Vec<Recommendation> {
    if instance.kind == InstanceKind::PostgreSql {
        return Vec::new();
    }
    let parameters = instance.last_start.as_ref().map(|start| &start.parameters);
    [
        automatic_memory(instance, parameters),
        memlock(instance),
        parameters.and_then(|parameters| pre_page_sga(instance, parameters)),
        parameters.and_then(indirect_buffers),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Oracle's recommendations for the whole host.
pub fn host_rule(survey: &Survey) -> Vec<Recommendation> {
    if survey.counted().all(|instance| instance.kind == InstanceKind::PostgreSql) {
        return Vec::new();
    }
    [large_pools(survey), ramfs(survey)].into_iter().flatten().collect()
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
    if instance.status.cause != Some(Cause::MemoryTarget) || instance.status.facts.asked.is_automatic_asm() {
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

/// The memlock limit of the instance is below its SGA.
fn memlock(instance: &Instance) -> Option<Recommendation> {
    let segment = instance.status.facts.segment.as_ref()?;
    let Some(Rlimit::At(limit)) = instance.memlock?.soft else { return None };
    if limit >= segment.to_reserve || instance.landed() == InstanceLanding::Amm {
        return None;
    }
    let wanted = segment.to_reserve.0.div_ceil(1024);
    let owner = instance.owner.as_deref().filter(|owner| !owner.contains(char::is_whitespace)).unwrap_or("oracle");
    let (command, place) = match instance.service.as_deref() {
        // CRS_LIMIT_MEMLOCK holds for all that the stack starts.
        Some(service) if service.contains("ohasd") => (
            None,
            format!(
                "{service} started it, to which limits.conf does not apply: set CRS_LIMIT_MEMLOCK in \
                 crs/install/s_crsconfig_HOST_env.txt of the Grid Infrastructure home and restart the stack"
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
                instance.name, segment.to_reserve
            ),
        )
    })
}

/// On 11.2 with base pages every login touches the whole SGA (2.5 s in place of 0.15 s in one case).
fn pre_page_sga(instance: &Instance, parameters: &Parameters) -> Option<Recommendation> {
    let is_11_2 = instance.version.as_deref().is_some_and(|version| version.starts_with("11."));
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
