//! The kernel's other parameters: transparent huge pages, and what makes memory short where it shows that it is.

use super::SizeOf;
use crate::Bytes;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::assess::Severity;

/// The hundredths of time with some task waiting for memory from which on it is short.
const PRESSURE: f64 = 10.0;
const SWAPPINESS: u64 = 10;

pub fn rule(situation: &Situation, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    let mut found: Vec<_> = transparent(situation).into_iter().collect();
    if let Some(symptom) = symptom(situation) {
        found.extend(swappiness(situation, &symptom));
        found.extend(min_free(situation, &symptom));
        found.extend(overcommit(situation, &symptom));
    }
    found
}

fn transparent(situation: &Situation) -> Option<Recommendation> {
    (situation.thp_enabled.as_deref()? == "always").then(|| Recommendation {
        severity: Severity::Notice,
        area: Area::Kernel,
        setting: "transparent_hugepage/enabled".to_owned(),
        current: Some("always".to_owned()),
        recommended: Some("madvise".to_owned()),
        reason:
            "It governs private memory alone, never shared_buffers, and with always the kernel stalls backends to put \
                 huge pages together that a database rarely fills."
                .to_owned(),
        command: Some("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".to_owned()),
        takes_effect: Effect::Now,
        saves: None,
    })
}

/// Signs that base pages cost the host dearly, as half a sentence.
fn symptom(situation: &Situation) -> Option<String> {
    let meminfo = situation.status.facts.meminfo.as_ref()?;
    let (tables, total) = (meminfo.page_tables?, meminfo.mem_total?);
    if tables > total.percent(5) {
        return Some(format!("Page tables take {tables} of {total} of memory"));
    }
    let pressure = situation.pressure.filter(|pressure| *pressure > PRESSURE)?;
    Some(format!("Tasks waited for memory {pressure}% of the last five minutes"))
}

fn sysctl(name: &str, current: u64, wanted: u64, reason: String) -> Recommendation {
    Recommendation {
        severity: Severity::Notice,
        area: Area::Kernel,
        setting: name.to_owned(),
        current: Some(current.to_string()),
        recommended: Some(wanted.to_string()),
        reason,
        command: Some(format!("sysctl -w {name}={wanted}")),
        takes_effect: Effect::Now,
        saves: None,
    }
}

fn swappiness(situation: &Situation, symptom: &str) -> Option<Recommendation> {
    let swap = situation.status.facts.meminfo.as_ref()?.swap_total?;
    let current = situation.swappiness.filter(|current| *current > SWAPPINESS && swap > Bytes(0))?;
    let reason =
        format!("{symptom}, and with {current} the kernel swaps out backends where it could drop cached files.");
    Some(sysctl("vm.swappiness", current, SWAPPINESS, reason))
}

/// Half a percent of memory, at most 1 GB, so that page tables can be allocated without direct reclaim.
fn min_free(situation: &Situation, symptom: &str) -> Option<Recommendation> {
    let total = situation.mem_total()?;
    let current = situation.min_free?;
    let wanted = Bytes((total.0 / 200).min(1 << 30));
    let kib = |size: Bytes| size.0 >> 10;
    (current < wanted).then(|| {
        let reason = format!(
            "{symptom}, and with {current} kept free, allocations soon have to reclaim memory themselves; {wanted} is half a \
             percent, or 1 GB."
        );
        sysctl("vm.min_free_kbytes", kib(current), kib(wanted), reason)
    })
}

/// Huge pages are no part of what the strict mode lets be committed.
fn overcommit(situation: &Situation, symptom: &str) -> Option<Recommendation> {
    let current = situation.overcommit_memory.filter(|current| *current == 1)?;
    let reason = format!("{symptom}, and with 1 the kernel promises any amount of it, until it has to kill a backend.");
    Some(sysctl("vm.overcommit_memory", current, 0, reason))
}
