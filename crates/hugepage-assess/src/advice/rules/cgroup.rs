//! Limits of control groups on huge pages.

use hugepage_kernel::Bytes;
use hugepage_kernel::cgroups::memory_cgroup::MemoryLimitKind;

use crate::advice::command;
use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Area, Effect, Recommendation};
use crate::assessment::Severity;
use crate::assessment::limits::{Excess, ExcessKind, excesses};
use crate::model::HugePages;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    if context.status.facts.requested.huge_pages == HugePages::Off {
        return Vec::new();
    }
    limits(context).unwrap_or_default()
}

/// Both kinds of limits: those checked when a page is touched and those checked when memory is mapped.
fn limits(context: &AdviceContext) -> Option<Vec<Recommendation>> {
    let status = &context.status;
    let limits = status.facts.pool_state.limits.as_ref()?;
    let size = status.facts.pool_state.huge_page_size?;
    let needed = size.times(status.forecast.needed.max(status.needed)?);
    let own = size.times(status.own);
    let mut found = Vec::new();
    for excess in excesses(limits, needed, own) {
        let Excess { kind, path, limit, need, advised, .. } = &excess;
        let severity = if context.in_huge_pages() { excess.severity } else { Severity::Warning };
        let takes = match kind {
            ExcessKind::Segment => format!("It allows {limit} of huge pages, and shared memory takes {needed}"),
            ExcessKind::Shared => {
                format!("It allows {limit} of huge pages, and shared memory and others that share it take {need}")
            }
            ExcessKind::Memory(_) => {
                format!(
                    "It allows {limit} and counts huge pages, and shared memory, private memory and huge pages of others take \
                     {need}"
                )
            }
        };
        let harm = match kind {
            ExcessKind::Memory(MemoryLimitKind::High) => "processes that touch more are slowed down",
            _ => "processes that touch more are killed by SIGBUS, or their reads fail",
        };
        found.push(row(severity, (path, *limit), *advised, format!("{takes}: {harm}.")));
    }
    if let Some(limit) = limits.tightest_reservation_without(own).filter(|limit| limit.room_without(own) < needed) {
        let wanted = limit.usage_without(own).saturating_add(needed);
        let reason = format!(
            "It allows only {} to be reserved, and shared memory takes {needed}: the next start gets base pages, or fails \
             with huge_pages = on.",
            limit.room_without(own)
        );
        found.push(row(Severity::Warning, (&limit.path, limit.limit), wanted, reason));
    }
    Some(found)
}

fn row(severity: Severity, (path, limit): (&str, Bytes), wanted: Bytes, reason: String) -> Recommendation {
    Recommendation {
        severity,
        area: Area::Cgroup,
        setting: path.to_owned(),
        current: Some(limit.0.to_string()),
        recommended: Some(wanted.0.to_string()),
        reason,
        command: Some(format!("echo {} > {}", wanted.0, command::quoted(path))),
        takes_effect: Effect::Now,
        saves: None,
    }
}
