//! huge_pages: `off` where huge pages would pay, and `on` with what it risks.

use super::SizeOf;
use crate::advise::context::Situation;
use crate::advise::recommendation::{Area, Effect, Recommendation, alter_system};
use crate::assess::{Outlook, Severity};
use crate::model::HugePages;
use crate::{Bytes, PageSize};

/// Below this many bytes of page tables huge pages are not worth a restart.
const WORTH_IT: Bytes = Bytes(64 << 20);

pub fn rule(situation: &Situation, _: &mut SizeOf<'_>) -> Vec<Recommendation> {
    let found = match situation.status.facts.asked.huge_pages {
        HugePages::Off => off(situation),
        HugePages::On => Some(on(situation)),
        HugePages::Try => None,
    };
    found.into_iter().collect()
}

fn row(severity: Severity, current: &str, reason: String, saves: Option<Bytes>) -> Recommendation {
    Recommendation {
        severity,
        area: Area::Postgresql,
        setting: "huge_pages".to_owned(),
        current: Some(current.to_owned()),
        recommended: Some("try".to_owned()),
        reason,
        command: Some(alter_system("huge_pages", "try")),
        takes_effect: Effect::ServerRestart,
        saves,
    }
}

fn off(situation: &Situation) -> Option<Recommendation> {
    let status = &situation.status;
    let at_most = situation.tables_at_most(PageSize::base());
    let (to_land, size) = (status.to_land?, status.facts.huge_page_size?);
    if at_most < WORTH_IT || status.does_not_fit() || status.facts.asked.sysv {
        return None;
    }
    let reason = format!(
        "{} connections that have touched all of the {} of shared memory take {at_most} of page tables on base pages; a pool \
         of {to_land} pages of {size} would spare them.",
        situation.server.max_connections,
        situation.segment(),
    );
    Some(row(Severity::Notice, "off", reason, situation.saving()))
}

/// With `on`, a server never runs in base pages; with `try`, it always runs.
fn on(situation: &Situation) -> Recommendation {
    let (severity, now) = match situation.status.outlook {
        Outlook::Fails => (Severity::Critical, "as the pool is now, that would happen"),
        Outlook::Hugetlb => (Severity::Notice, "as the pool is now, a restart would get its pages"),
        _ => (Severity::Warning, "whether the pool would serve a restart is not certain"),
    };
    let reason = format!(
        "With on, the crash of one backend becomes an outage if the pool has shrunk since the start, while try would go on in \
         base pages and hugepage_status would warn; {now}."
    );
    row(severity, "on", reason, None)
}
