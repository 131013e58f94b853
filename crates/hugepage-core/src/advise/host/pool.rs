//! The pools of the host: as many pages as everything known needs.

use crate::Pages;
use crate::advise::command;
use crate::advise::recommendation::{Area, Effect, Recommendation};
use crate::advise::rules::pool_setting;
use crate::assess::{Severity, Sizing};
use crate::collect::instances::Survey;

pub fn rule(survey: &Survey, sizing: &Sizing) -> Vec<Recommendation> {
    let mut found: Vec<_> = set_pool(survey, sizing).into_iter().collect();
    found.extend(sizing.misfits.iter().map(|misfit| Recommendation {
        severity: Severity::Warning,
        area: Area::Kernel,
        setting: pool_setting(sizing.page_size, survey.is_default(sizing.page_size)),
        current: survey.pool(sizing.page_size).map(|pool| pool.nr.to_string()),
        recommended: None,
        reason: format!(
            "{} needs {} pages of {}, {} more than this host can hold beside the others and what it keeps for base pages.",
            misfit.name, misfit.pages, sizing.page_size, misfit.over
        ),
        command: None,
        takes_effect: Effect::ServerRestart,
        saves: None,
    }));
    found
}

/// The command that sets the pool to what all need, if it has less and the host can hold that.
pub fn change(survey: &Survey, sizing: &Sizing) -> Option<String> {
    let (wanted, now) = (sizing.recommended?, survey.pool(sizing.page_size)?.persistent());
    (wanted > now).then(|| command::set_pool(sizing.page_size, survey.is_default(sizing.page_size), wanted))
}

fn set_pool(survey: &Survey, sizing: &Sizing) -> Option<Recommendation> {
    let (size, wanted) = (sizing.page_size, sizing.recommended?);
    let now = survey.pool(size)?.persistent();
    let is_default = survey.is_default(size);
    let needed: Pages = sizing.needs.iter().fold(Pages(0), |sum, need| sum.saturating_add(need.pages));
    let (severity, reason, saves) = if wanted > now {
        let lacking = sizing.needs.iter().filter(|need| need.held < need.pages).count();
        let severity = if lacking > 0 { Severity::Warning } else { Severity::Notice };
        let reason = format!(
            "The {} instances of this host need {needed} pages of {size} and others hold {}, which is {} more than the {now} \
             that the pool keeps.",
            sizing.needs.len(),
            sizing.others,
            wanted.saturating_sub(now)
        );
        (severity, reason, None)
    // Where nothing runs, what is down for a while may be what the pool is for.
    } else if !sizing.needs.is_empty() && now > wanted && now.0 >= wanted.0.saturating_mul(2) {
        let idle = now.saturating_sub(wanted);
        let reason = format!(
            "Of the pool's {now} pages of {size}, {wanted} are all that anybody running needs: the other {idle} are kept from \
             everything else."
        );
        (Severity::Warning, reason, Some(size.times(idle)))
    } else {
        return None;
    };
    Some(Recommendation {
        severity,
        area: Area::Kernel,
        setting: pool_setting(size, is_default),
        current: Some(now.to_string()),
        recommended: Some(wanted.to_string()),
        reason,
        command: Some(command::set_pool(size, is_default, wanted)),
        takes_effect: if saves.is_some() { Effect::Now } else { Effect::ServerRestart },
        saves,
    })
}
