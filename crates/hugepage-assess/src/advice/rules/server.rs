//! Settings that prevent huge pages, and shared memory that exceeds what the host can hold in huge pages.

use hugepage_kernel::PageSize;

use crate::advice::context::AdviceContext;
use crate::advice::recommendation::{Recommendation, setting};
use crate::advice::{pool, shared_buffers};
use crate::model::{Cause, PoolFact};

pub fn rule(context: &AdviceContext) -> Vec<Recommendation> {
    [too_large(context), shared_memory_type(context), huge_page_size(context)].into_iter().flatten().collect()
}

/// Shared memory exceeds what the host can hold in huge pages: by how much, and the largest that fits.
pub fn too_large(context: &AdviceContext) -> Option<Recommendation> {
    let status = &context.status;
    if !status.does_not_fit() {
        return None;
    }
    let (size, capacity, to_land) = (status.facts.pool_state.huge_page_size?, status.capacity?, status.to_land?);
    let beside = to_land.saturating_sub(status.needed?);
    let room = capacity.comfortable(beside).saturating_sub(beside);
    let buffers = status.facts.requested.shared_buffers;
    let segment = context.server.shared_memory.unwrap_or(context.segment());
    let fits = shared_buffers::largest(size.times(room), buffers, segment);
    let over = to_land.saturating_sub(capacity.most);
    let most = match fits {
        Some(fits) => format!("shared_buffers = {fits} is the largest that fits"),
        None => "no shared_buffers fits beside the pages that other processes hold".to_owned(),
    };
    let reason = format!(
        "The host would need {to_land} pages of {size}, {over} more than the {}; {most}.",
        pool::held(capacity)
    );
    let severity = context.severity_of_base_pages();
    Some(Recommendation::of_server(severity, "shared_buffers", setting(buffers), fits.map(setting), reason, None))
}

fn shared_memory_type(context: &AdviceContext) -> Option<Recommendation> {
    if context.status.cause != Some(Cause::SysvSharedMemory) {
        return None;
    }
    let reason = format!(
        "PostgreSQL does not use huge pages for System V shared memory ({}); neither vm.hugetlb_shm_group nor memlock \
         changes that.",
        context.segment()
    );
    let (severity, recommended) = (context.severity_of_base_pages(), Some("mmap".to_owned()));
    let current = "sysv".to_owned();
    Some(Recommendation::of_server(severity, "shared_memory_type", current, recommended, reason, context.saving()))
}

fn huge_page_size(context: &AdviceContext) -> Option<Recommendation> {
    let facts = &context.status.facts;
    let PoolFact::Unsupported(sizes) = &facts.pool_state.pool else { return None };
    let requested = facts.requested.huge_page_size.filter(|_| !sizes.is_empty())?;
    let there: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
    let reason = format!("This machine has no pages of {requested}, only of {}.", there.join(", "));
    let (severity, recommended) = (context.severity_of_base_pages(), Some("0".to_owned()));
    let current = requested.setting();
    Some(Recommendation::of_server(severity, "huge_page_size", current, recommended, reason, context.saving()))
}
