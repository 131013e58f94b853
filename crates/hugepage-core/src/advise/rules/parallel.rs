//! min_dynamic_shared_memory: without it, what parallel query shares never is in huge pages.

use super::SizeOf;
use crate::Bytes;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation, alter_system, setting};
use crate::assess::Severity;

/// The setting counts in megabytes.
const UNIT: u64 = 1 << 20;

pub fn rule(situation: &Situation, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    enough(situation).into_iter().collect()
}

fn enough(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let server = &situation.server;
    if !situation.in_huge_pages() || server.min_dynamic_shared_memory > Bytes(0) || server.parallel_memory == Bytes(0) {
        return None;
    }
    let size = status.facts.huge_page_size?;
    let wanted = Bytes(server.parallel_memory.0.div_ceil(UNIT) * UNIT);
    let pages = size.pages_to_hold(situation.segment().saturating_add(wanted));
    let pool = status.share?.others.saturating_add(pages);
    if pool > status.capacity? {
        return None;
    }
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Postgresql,
        setting: "min_dynamic_shared_memory".to_owned(),
        current: Some("0".to_owned()),
        recommended: Some(setting(wanted)),
        reason: format!(
            "What parallel query shares, up to {wanted} with all workers at work_mem, is in base pages of dynamic segments; \
             within the main segment it is in huge pages, with a pool of {pool} pages of {size}."
        ),
        command: Some(alter_system("min_dynamic_shared_memory", &setting(wanted))),
        takes_effect: Effect::ServerRestart,
        saves: None,
    })
}
