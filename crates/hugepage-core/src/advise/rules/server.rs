//! Settings that prevent huge pages, and shared memory that exceeds what the host can hold in huge pages.

use super::SizeOf;
use crate::PageSize;
use crate::advise::context::AdviceContext;
use crate::advise::recommendation::{Area, Effect, Recommendation, alter_system, setting};
use crate::advise::shared_buffers;
use crate::assess::Severity;
use crate::model::{Cause, PoolFact};

pub fn rule(context: &AdviceContext, size_of: &mut SizeOf<'_>) -> Vec<Recommendation> {
    [too_large(context, size_of), shared_memory_type(context), huge_page_size(context)].into_iter().flatten().collect()
}

/// Shared memory exceeds what the host can hold in huge pages: by how much, and the largest that fits.
pub fn too_large(context: &AdviceContext, size_of: &mut SizeOf<'_>) -> Option<Recommendation> {
    let status = &context.status;
    if !status.does_not_fit() {
        return None;
    }
    let (size, capacity, to_land) = (status.facts.huge_page_size?, status.capacity?, status.to_land?);
    let room = capacity.saturating_sub(status.share?.others);
    let buffers = status.facts.asked.shared_buffers;
    let fits = shared_buffers::shared_buffers(size.times(room), (buffers, context.segment()), size_of);
    let over = to_land.saturating_sub(capacity);
    let most = match fits {
        Some(fits) => format!("shared_buffers = {fits} is the largest that fits"),
        None => "no shared_buffers fits beside the pages that other processes hold".to_owned(),
    };
    Some(Recommendation {
        severity: context.severity_of_base_pages(),
        area: Area::Postgresql,
        setting: "shared_buffers".to_owned(),
        current: Some(setting(buffers)),
        recommended: fits.map(setting),
        reason: format!(
            "The host would need {to_land} pages of {size}, {over} more than the {capacity} it can hold with {}% of memory in \
             base pages; {most}.",
            status.facts.reserve_percent
        ),
        command: fits.map(|fits| alter_system("shared_buffers", &setting(fits))),
        takes_effect: Effect::ServerRestart,
        saves: None,
    })
}

fn shared_memory_type(context: &AdviceContext) -> Option<Recommendation> {
    (context.status.cause == Some(Cause::SysvSharedMemory)).then(|| Recommendation {
        severity: context.severity_of_base_pages(),
        area: Area::Postgresql,
        setting: "shared_memory_type".to_owned(),
        current: Some("sysv".to_owned()),
        recommended: Some("mmap".to_owned()),
        reason: format!(
            "PostgreSQL does not use huge pages for System V shared memory ({}); neither vm.hugetlb_shm_group nor memlock \
             changes that.",
            context.segment()
        ),
        command: Some(alter_system("shared_memory_type", "mmap")),
        takes_effect: Effect::ServerRestart,
        saves: context.saving(),
    })
}

fn huge_page_size(context: &AdviceContext) -> Option<Recommendation> {
    let facts = &context.status.facts;
    let PoolFact::Unsupported(sizes) = &facts.pool else { return None };
    let asked = facts.asked.huge_page_size?;
    let there: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
    (!sizes.is_empty()).then(|| Recommendation {
        severity: context.severity_of_base_pages().max(Severity::Notice),
        area: Area::Postgresql,
        setting: "huge_page_size".to_owned(),
        current: Some(asked.setting()),
        recommended: Some("0".to_owned()),
        reason: format!("This machine has no pages of {asked}, only of {}.", there.join(", ")),
        command: Some(alter_system("huge_page_size", "0")),
        takes_effect: Effect::ServerRestart,
        saves: context.saving(),
    })
}
