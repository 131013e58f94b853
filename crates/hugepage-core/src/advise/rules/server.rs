//! Settings of the server that keep it from huge pages, and shared memory that the host can't hold in them.

use super::SizeOf;
use crate::PageSize;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation, alter_system, setting};
use crate::advise::shared_buffers;
use crate::assess::Severity;
use crate::model::{Cause, PoolFact};

pub fn rule(situation: &Situation, size_of: &mut SizeOf<'_>) -> Vec<Recommendation> {
    [too_large(situation, size_of), shared_memory_type(situation), huge_page_size(situation)]
        .into_iter()
        .flatten()
        .collect()
}

/// More than the host can hold beside what it keeps for base pages: by how much, and the most that would fit.
pub fn too_large(situation: &Situation, size_of: &mut SizeOf<'_>) -> Option<Recommendation> {
    let status = &situation.status;
    if !status.does_not_fit() {
        return None;
    }
    let (size, capacity, to_land) = (status.facts.huge_page_size?, status.capacity?, status.to_land?);
    let room = capacity.saturating_sub(status.share?.others);
    let buffers = status.facts.asked.shared_buffers;
    let fits = shared_buffers::shared_buffers(size.times(room), (buffers, situation.segment()), size_of);
    let over = to_land.saturating_sub(capacity);
    let most = match fits {
        Some(fits) => format!("shared_buffers = {fits} is the largest that fits"),
        None => "no shared_buffers fit beside what others hold".to_owned(),
    };
    Some(Recommendation {
        severity: situation.severity_of_base_pages(),
        area: Area::Postgresql,
        setting: "shared_buffers".to_owned(),
        current: Some(setting(buffers)),
        recommended: fits.map(setting),
        reason: format!(
            "In huge pages the host would need {to_land} pages of {size}, {over} more than the {capacity} it can hold beside \
             the {}% of memory kept for base pages; {most}.",
            status.facts.reserve_percent
        ),
        command: fits.map(|fits| alter_system("shared_buffers", &setting(fits))),
        takes_effect: Effect::ServerRestart,
        saves: None,
    })
}

fn shared_memory_type(situation: &Situation) -> Option<Recommendation> {
    (situation.status.cause == Some(Cause::SysvSharedMemory)).then(|| Recommendation {
        severity: situation.severity_of_base_pages(),
        area: Area::Postgresql,
        setting: "shared_memory_type".to_owned(),
        current: Some("sysv".to_owned()),
        recommended: Some("mmap".to_owned()),
        reason: format!(
            "PostgreSQL never asks for huge pages with System V shared memory, so its {} are in base pages whatever the pool \
             has, and neither vm.hugetlb_shm_group nor memlock would change that.",
            situation.segment()
        ),
        command: Some(alter_system("shared_memory_type", "mmap")),
        takes_effect: Effect::ServerRestart,
        saves: situation.saving(),
    })
}

fn huge_page_size(situation: &Situation) -> Option<Recommendation> {
    let facts = &situation.status.facts;
    let PoolFact::Unsupported(sizes) = &facts.pool else { return None };
    let asked = facts.asked.huge_page_size?;
    let there: Vec<_> = sizes.iter().map(PageSize::to_string).collect();
    (!sizes.is_empty()).then(|| Recommendation {
        severity: situation.severity_of_base_pages().max(Severity::Notice),
        area: Area::Postgresql,
        setting: "huge_page_size".to_owned(),
        current: Some(asked.setting()),
        recommended: Some("0".to_owned()),
        reason: format!("This machine has no pages of {asked}, only of {}.", there.join(", ")),
        command: Some(alter_system("huge_page_size", "0")),
        takes_effect: Effect::ServerRestart,
        saves: situation.saving(),
    })
}
