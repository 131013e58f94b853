//! Other kernel parameters: transparent huge pages, and those that matter when memory is short.

use hugepage_kernel::Bytes;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Recommendation};
use crate::assessment::Severity;

/// The percentage of time in which a task waits for memory above which memory is short.
const MAX_PRESSURE: f64 = 10.0;
const SWAPPINESS: u64 = 10;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    let mut found: Vec<_> = transparent(context).into_iter().collect();
    if let Some(symptom) = symptom(context) {
        found.extend(swappiness(context, &symptom));
        found.extend(min_free(context, &symptom));
        found.extend(overcommit(context, &symptom));
    }
    found
}

fn transparent(context: &AdviceContext) -> Option<Recommendation> {
    let reason = "It does not affect shared_buffers; with always, backends wait while the kernel compacts memory for huge pages \
                  that their private memory rarely fills.";
    (context.thp_enabled.as_deref()? == "always").then(|| Recommendation {
        current: Some("always".to_owned()),
        recommended: Some("madvise".to_owned()),
        command: Some("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()),
        ..Recommendation::new(Severity::Notice, Area::Kernel, "transparent_hugepage/enabled", reason)
    })
}

/// A sign that page tables make memory short, as a clause; `None` if there is none.
fn symptom(context: &AdviceContext) -> Option<String> {
    let meminfo = context.status.facts.meminfo.as_ref()?;
    let (tables, total) = (meminfo.page_tables?, meminfo.mem_total?);
    if tables > total.percent(5) {
        return Some(format!("Page tables take {tables} of {total} of memory"));
    }
    let pressure = context.pressure.filter(|pressure| *pressure > MAX_PRESSURE)?;
    Some(format!("Tasks waited for memory {pressure}% of the last five minutes"))
}

fn sysctl(name: &str, current: u64, wanted: u64, reason: String) -> Recommendation {
    Recommendation {
        current: Some(current.to_string()),
        recommended: Some(wanted.to_string()),
        command: Some(format!("sysctl -w {name}={wanted}")),
        ..Recommendation::new(Severity::Notice, Area::Kernel, name, reason)
    }
}

fn swappiness(context: &AdviceContext, symptom: &str) -> Option<Recommendation> {
    let swap = context.status.facts.meminfo.as_ref()?.swap_total?;
    let current = context.swappiness.filter(|current| *current > SWAPPINESS && swap > Bytes(0))?;
    let reason =
        format!("{symptom}, and with {current} the kernel swaps out backends instead of dropping cached files.");
    Some(sysctl("vm.swappiness", current, SWAPPINESS, reason))
}

/// 0.5% of memory, at most 1 GB, so that page tables can be allocated without direct reclaim.
fn min_free(context: &AdviceContext, symptom: &str) -> Option<Recommendation> {
    let total = context.mem_total()?;
    let current = context.min_free?;
    let wanted = Bytes((total.0 / 200).min(1 << 30));
    let kib = |size: Bytes| size.0 >> 10;
    (current < wanted).then(|| {
        let reason = format!(
            "{symptom}, and with only {current} kept free, processes have to reclaim memory themselves; {wanted} is 0.5% of \
             memory, at most 1 GB."
        );
        sysctl("vm.min_free_kbytes", kib(current), kib(wanted), reason)
    })
}

/// Mode 2 is not recommended: its commit limit does not count huge pages.
fn overcommit(context: &AdviceContext, symptom: &str) -> Option<Recommendation> {
    let current = context.overcommit_memory.filter(|current| *current == 1)?;
    let reason =
        format!("{symptom}, and with 1 the kernel grants any amount of memory until it has to kill a backend.");
    Some(sysctl("vm.overcommit_memory", current, 0, reason))
}
