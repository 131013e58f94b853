//! Limits of control groups on huge pages.

use super::SizeOf;
use crate::Bytes;
use crate::advise::command;
use crate::advise::context::AdviceContext;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::assess::Severity;
use crate::model::HugePages;
use crate::read::cgroup::CgroupLimit;

pub fn rule(context: &AdviceContext, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    if context.status.facts.asked.huge_pages == HugePages::Off {
        return Vec::new();
    }
    limits(context).unwrap_or_default()
}

/// Both kinds of limits: those checked when a page is touched and those checked when memory is mapped.
fn limits(context: &AdviceContext) -> Option<Vec<Recommendation>> {
    let status = &context.status;
    let limits = status.facts.limits.as_ref()?;
    let size = status.facts.huge_page_size?;
    let needed = size.times(status.forecast.needed.max(status.needed)?);
    let own = size.times(status.own);
    let mut found = Vec::new();
    if let Some(limit) = limits.lowest_fault().filter(|limit| limit.limit < needed) {
        let severity = if context.in_huge_pages() { Severity::Critical } else { Severity::Warning };
        let reason = format!(
            "It allows {} of huge pages, and shared memory takes {needed}: processes that touch more are killed by SIGBUS, or \
             their reads fail.",
            limit.limit
        );
        found.push(row(severity, limit, needed, reason));
    }
    if let Some(limit) = limits.tightest_reservation_without(own).filter(|limit| limit.room_without(own) < needed) {
        let wanted = limit.usage.saturating_sub(own).saturating_add(needed);
        let reason = format!(
            "It allows only {} to be reserved, and shared memory takes {needed}: the next start gets base pages, or fails \
             with huge_pages = on.",
            limit.room_without(own)
        );
        found.push(row(Severity::Warning, limit, wanted, reason));
    }
    Some(found)
}

fn row(severity: Severity, limit: &CgroupLimit, wanted: Bytes, reason: String) -> Recommendation {
    Recommendation {
        severity,
        area: Area::Cgroup,
        setting: limit.path.clone(),
        current: Some(limit.limit.0.to_string()),
        recommended: Some(wanted.0.to_string()),
        reason,
        command: Some(format!("echo {} > {}", wanted.0, command::quoted(&limit.path))),
        takes_effect: Effect::Now,
        saves: None,
    }
}
