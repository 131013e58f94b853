//! The pools of the host: the exact need of all known users.

use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect, Recommendation};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::stopped_databases::Wants;
use hugepage_kernel::Pages;

use crate::Survey;

pub(super) fn rule(survey: &Survey, sizing: &Sizing) -> Vec<Recommendation> {
    let mut found: Vec<_> = set_pool(survey, sizing).into_iter().collect();
    found.extend(sizing.misfits.iter().map(|misfit| Recommendation {
        severity: Severity::Warning,
        area: Area::Kernel,
        setting: pool::setting(sizing.page_size, survey.is_default(sizing.page_size)),
        current: survey.pool(sizing.page_size).map(|pool| pool.nr.to_string()),
        recommended: None,
        reason: format!(
            "{} needs {} pages of {}, {} more than this host can hold beside the other users and the memory in use.",
            misfit.name, misfit.pages, sizing.page_size, misfit.over
        ),
        command: None,
        takes_effect: Effect::ServerRestart,
        saves: None,
    }));
    found
}

fn set_pool(survey: &Survey, sizing: &Sizing) -> Option<Recommendation> {
    let (size, wanted) = (sizing.page_size, sizing.recommended?);
    let (now, nr) = (survey.pool(size)?.persistent(), survey.pool(size)?.nr);
    let (of_size, pages) = ((size, survey.is_default(size)), (now, wanted));
    let needed: Pages = sizing.needs.iter().fold(Pages(0), |sum, need| sum.saturating_add(need.pages));
    let is_unknown = survey.stopped.iter().any(|stopped| matches!(stopped.wants, Wants::Unknown(_)));
    if wanted > now {
        let lacking = sizing.needs.iter().filter(|need| need.is_running && need.held < need.pages).count();
        let severity = if lacking > 0 { Severity::Warning } else { Severity::Notice };
        let who = match sizing.needs.len() {
            1 => "The one instance of this host needs".to_owned(),
            count => format!("The {count} instances of this host need"),
        };
        let caution = pool::caution(wanted, size, sizing.capacity.filter(|_| wanted > nr));
        let holder = survey.holders.first().map(|holder| holder.clause(sizing.others)).unwrap_or_default();
        let reason = pool::shortfall(&who, needed, sizing.others, pages, size) + &holder + &caution + ".";
        Some(pool::set(of_size, pages, severity, Effect::ServerRestart, reason, None))
    // Without a running server, or with one whose need is unknown, the pool may be for servers that are stopped.
    } else if sizing.needs.iter().any(|need| need.is_running)
        && !is_unknown
        && now > wanted
        && now.0 >= wanted.0.saturating_mul(2)
    {
        let reason = format!("{} and cannot be used for anything else.", pool::excess(now, wanted, size));
        let unused = size.times(now.saturating_sub(wanted));
        Some(pool::set(of_size, pages, Severity::Warning, Effect::Now, reason, Some(unused)))
    } else {
        None
    }
}
