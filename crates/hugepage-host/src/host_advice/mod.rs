//! The recommendations for a host with several servers, from the steps that the findings of each lead to.

pub mod verdict;

use std::cmp::Reverse;

use hugepage_assess::advice::Recommendation;
use hugepage_assess::advice::plan::{Plan, Step, rows};
use hugepage_assess::advice::pool;
use hugepage_assess::advice::recommendation::{Area, Effect};
use hugepage_assess::assessment::Severity;
use hugepage_kernel::PageSize;
use hugepage_sizing::{Misfit, Sizing};
use serde::Serialize;

use crate::{Instance, Survey};

/// A recommendation for one server or for the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostRecommendation {
    /// The server's name; `None` for the host.
    pub instance: Option<String>,
    /// What to set.
    #[serde(flatten)]
    pub recommendation: Recommendation,
    /// Whether it is a step of an instance's hint.
    #[serde(skip)]
    pub is_in_hint: bool,
}

/// All recommendations, the most severe first.
pub fn recommendations(survey: &Survey, sizings: &[Sizing]) -> Vec<HostRecommendation> {
    let of_host = |recommendation| HostRecommendation { instance: None, recommendation, is_in_hint: false };
    let mut all = Vec::new();
    for sizing in sizings {
        all.extend(of_pool(survey, sizing));
        all.extend(sizing.misfits.iter().map(|misfit| of_host(of_misfit(survey, sizing.page_size, misfit))));
    }
    let mut of_instances = Vec::new();
    for instance in survey.instances.iter() {
        let in_hint = Some(instance.status.verdict().1.name());
        for recommendation in rows::of_findings(&instance.status) {
            let is_of_host = matches!(recommendation.area, Area::Kernel | Area::Boot);
            let name = (!is_of_host).then(|| instance.id.name.clone());
            let is_in_hint = recommendation.finding.is_some() && recommendation.finding == in_hint;
            of_instances.push(HostRecommendation { instance: name, recommendation, is_in_hint });
        }
    }
    // Of a setting of the host there is one row: the one above, or that of the most severe instance.
    of_instances.sort_by_key(|one| Reverse(one.recommendation.severity));
    let key =
        |of: &HostRecommendation| (of.instance.clone(), of.recommendation.area, of.recommendation.setting.clone());
    for one in of_instances {
        if one.instance.is_some() || all.iter().all(|known| key(known) != key(&one)) {
            all.push(one);
        }
    }
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|one| Reverse(one.recommendation.severity));
    all
}

/// The step that gives a pool the pages that servers lack.
pub fn pool_step(survey: &Survey, sizing: &Sizing) -> Option<Step> {
    sizing.step(survey.host.pool(sizing.page_size)?, survey.is_default(sizing.page_size))
}

fn of_pool(survey: &Survey, sizing: &Sizing) -> Option<HostRecommendation> {
    let (pool, is_default) = (survey.host.pool(sizing.page_size)?, survey.is_default(sizing.page_size));
    let step = pool_step(survey, sizing)?;
    // As severe as the most severe that lacks pages.
    let lacking = survey.instances.iter().filter(|instance| lacks_pages(instance, sizing.page_size));
    let severity = lacking.map(|instance| instance.status.verdict().0).max().unwrap_or(Severity::Notice);
    let holder = survey.host.holders.iter().find(|holder| holder.counts);
    let holder = holder.map(|holder| holder.clause(sizing.counted_others())).unwrap_or_default();
    let recommendation = sizing.row(pool, is_default, severity, &holder)?;
    let is_in_hint = survey.instances.iter().any(|instance| {
        let plan = Plan::of_finding(&instance.status, instance.status.verdict().1);
        plan.is_some_and(|plan| plan.steps.iter().any(|of| of.command() == step.command()))
    });
    Some(HostRecommendation { instance: None, recommendation, is_in_hint })
}

/// Whether a finding on an instance leads to a larger pool of `size`.
fn lacks_pages(instance: &Instance, size: PageSize) -> bool {
    let findings = instance.status.findings.iter();
    let plans = findings.filter_map(|(_, finding)| Plan::of_finding(&instance.status, finding));
    let sets_pool = |step: &Step| matches!(step, Step::SetPool { size: of, .. } if *of == size);
    plans.flat_map(|plan| plan.steps).any(|step| sets_pool(&step))
}

fn of_misfit(survey: &Survey, size: PageSize, misfit: &Misfit) -> Recommendation {
    let reason = format!(
        "{} would need {} pages of {size} and does not fit: they are {} more than this host can hold beside the other users and the \
         memory in use; it counts with {}.",
        misfit.name, misfit.pages, misfit.over, misfit.counted
    );
    Recommendation {
        current: survey.host.pool(size).map(|pool| pool.nr.to_string()),
        takes_effect: Effect::ServerRestart,
        ..Recommendation::new(Severity::Warning, Area::Kernel, pool::setting(size, survey.is_default(size)), reason)
    }
}

impl Survey {
    /// Whether mappings that request no size get huge pages of `size`.
    fn is_default(&self, size: PageSize) -> bool {
        self.host.default_page_size() == Some(size)
    }
}
