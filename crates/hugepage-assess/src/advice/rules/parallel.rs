//! min_dynamic_shared_memory: without it, the shared memory of parallel queries is never in huge pages.

use hugepage_kernel::Bytes;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Recommendation, setting};
use crate::assessment::Severity;

/// The unit of the setting: 1 MB.
const UNIT: u64 = 1 << 20;

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    in_main_segment(context).into_iter().collect()
}

fn in_main_segment(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    let server = &context.server;
    if !context.in_huge_pages() || server.min_dynamic_shared_memory > Bytes(0) || server.parallel_memory == Bytes(0) {
        return None;
    }
    let size = status.facts.pool_state.huge_page_size?;
    let wanted = Bytes(server.parallel_memory.0.div_ceil(UNIT) * UNIT);
    let pages = size.pages_to_hold(context.segment().saturating_add(wanted));
    let pool = status.share?.others.saturating_add(pages);
    if pool > status.capacity?.within_reserve.min(status.capacity?.most) {
        return None;
    }
    let reason = format!(
        "Parallel queries share up to {wanted} in base pages; in the main segment this memory is in huge pages and needs \
             a pool of {pool} pages of {size}."
    );
    Some(Recommendation::of_server(
        Severity::Notice,
        "min_dynamic_shared_memory",
        "0".to_owned(),
        Some(setting(wanted)),
        reason,
        None,
    ))
}
