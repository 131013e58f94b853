//! Pages of 1 GB: where they pay, and how full the last one is.

use super::SizeOf;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation, alter_system, setting};
use crate::advise::shared_buffers;
use crate::assess::Severity;
use crate::collect::pools;
use crate::model::HugePages;
use crate::{Bytes, PageSize};

/// What the last page must leave unused, or page tables must shrink by, to be worth a row.
const WORTH_IT: Bytes = Bytes(128 << 20);
const GIGANTIC: PageSize = PageSize::new(1 << 30).unwrap();

pub fn rule(situation: &Situation, size_of: &mut SizeOf<'_>) -> Vec<Recommendation> {
    if situation.status.facts.asked.huge_pages == HugePages::Off || situation.status.does_not_fit() {
        return Vec::new();
    }
    [last_page(situation, size_of), would_pay(situation)].into_iter().flatten().collect()
}

/// The larger shared_buffers that takes the same pages.
fn last_page(situation: &Situation, size_of: &mut SizeOf<'_>) -> Option<Recommendation> {
    let status = &situation.status;
    let (size, needed) = (status.facts.huge_page_size.filter(|size| *size >= GIGANTIC)?, status.needed?);
    let buffers = status.facts.asked.shared_buffers;
    // What huge pages round up can't be seen in the mapping: the server's program knows the exact size.
    let exact = size_of(buffers)?;
    let unused = size.times(needed).saturating_sub(exact);
    if size.pages_to_hold(exact) != needed || unused < WORTH_IT {
        return None;
    }
    let fits =
        shared_buffers::shared_buffers(size.times(needed), (buffers, exact), size_of).filter(|fits| *fits > buffers)?;
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Postgresql,
        setting: "shared_buffers".to_owned(),
        current: Some(setting(buffers)),
        recommended: Some(setting(fits)),
        reason: format!(
            "Shared memory takes {needed} pages of {size} and leaves {unused} of the last one unused; shared_buffers = {fits} \
             takes the same {needed}."
        ),
        command: Some(alter_system("shared_buffers", &setting(fits))),
        takes_effect: Effect::ServerRestart,
        saves: Some(unused),
    })
}

/// Page tables on 2 MB pages count from tens of gigabytes and hundreds of connections on.
fn would_pay(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let size = status.facts.huge_page_size.filter(|size| *size < GIGANTIC)?;
    let there = pools::of_size(&situation.pools, GIGANTIC).is_some();
    let less = situation.tables_at_most(size).saturating_sub(situation.tables_at_most(GIGANTIC));
    let pages = GIGANTIC.pages_to_hold(situation.segment());
    let wasted = GIGANTIC.times(pages).saturating_sub(situation.segment());
    // The pages of this size would go back to the host before.
    let fits = size.pages_to_hold(GIGANTIC.times(pages)) <= status.capacity?.saturating_sub(status.share?.others);
    if !there || !fits || less < WORTH_IT || less <= wasted {
        return None;
    }
    Some(Recommendation {
        severity: Severity::Notice,
        area: Area::Postgresql,
        setting: "huge_page_size".to_owned(),
        current: Some(size.setting()),
        recommended: Some("1GB".to_owned()),
        reason: format!(
            "On {pages} pages of 1 GB, reserved at boot in place of those of {size}, {} connections would have {less} less of \
             page tables, and {wasted} would lie unused.",
            situation.server.max_connections
        ),
        command: Some(alter_system("huge_page_size", "1GB")),
        takes_effect: Effect::Reboot,
        saves: Some(less.saturating_sub(wasted)),
    })
}
