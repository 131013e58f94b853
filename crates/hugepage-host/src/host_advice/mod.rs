//! The recommendations for a host with several servers, and one sentence on its state.

mod pool;

use std::cmp::Reverse;

use hugepage_assess::advice::{self, Recommendation};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_kernel::PageSize;
use hugepage_oracle::advice::host::{self, AdvisedHost};
use hugepage_oracle::advice::instance::{self, AdvisedOracle};

use crate::{Instance, InstanceLanding, Survey};

/// A recommendation for one server or for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecommendation {
    /// The server's name; `None` for the host.
    pub instance: Option<String>,
    /// What to set.
    pub recommendation: Recommendation,
}

/// All recommendations, the gravest first.
pub fn recommendations(survey: &Survey, sizings: &[Sizing]) -> Vec<HostRecommendation> {
    let of_host = |recommendation| HostRecommendation { instance: None, recommendation };
    let mut all: Vec<_> = sizings.iter().flat_map(|sizing| pool::rule(survey, sizing)).map(of_host).collect();
    for instance in survey.instances.iter() {
        let of_instance =
            |recommendation| HostRecommendation { instance: Some(instance.id.name.clone()), recommendation };
        let oracle = instance.advised_oracle();
        all.extend(oracle.iter().flat_map(instance::recommendations).map(of_instance));
    }
    all.extend(host::recommendations(&survey.advised_oracles(), sizings).into_iter().map(of_host));
    // The sort is stable, so among equals the order above holds.
    all.sort_by_key(|one| Reverse(one.recommendation.severity));
    all
}

/// The gravest of all servers' verdicts, and one sentence on the host.
pub fn verdict(survey: &Survey, sizings: &[Sizing]) -> (Severity, String) {
    let count = survey.instances.len();
    let others = survey.strangers.count();
    let worst = survey.instances.iter().max_by_key(|instance| instance.status.verdict().0);
    let worst_stopped = survey.stopped.iter().max_by_key(|stopped| (stopped.severity(), Reverse(&stopped.name)));
    let of_stopped = |text: String| match worst_stopped {
        Some(stopped) if stopped.severity() > Severity::Notice => {
            format!("{text} {}: {}", stopped.name, stopped.message())
        }
        _ => text,
    };
    let stopped_severity = worst_stopped.map_or(Severity::Ok, |stopped| stopped.severity());
    let Some(worst) = worst else {
        return (stopped_severity.max(Severity::Notice), of_stopped(no_instance(survey)));
    };
    let of_running = worst.status.verdict().0;
    // That an instance is stopped is no finding on those that run.
    let severity = if stopped_severity > Severity::Notice { of_running.max(stopped_severity) } else { of_running };
    let misfits: Vec<_> = sizings.iter().flat_map(|sizing| &sizing.misfits).collect();
    let landed = survey.instances.iter().filter(|instance| instance.landed() == InstanceLanding::All).count();
    let unknown = survey.instances.iter().filter(|instance| instance.landed().is_hidden()).count();
    let mut text = match (count, landed) {
        (1, 1) => "The one instance is in huge pages".to_owned(),
        (1, _) if unknown == 1 => "The one instance could not be inspected".to_owned(),
        (1, _) => "The one instance is not completely in huge pages".to_owned(),
        _ if landed == count => format!("All {count} instances are in huge pages"),
        _ => format!("{landed} of {count} instances are in huge pages"),
    };
    if unknown > 0 && count > 1 {
        text += &format!(", {unknown} could not be inspected");
    }
    if others > 0 {
        text += &format!(" ({others} more not counted)");
    }
    if let Some(misfit) = misfits.first() {
        text += &format!("; {} does not fit this host: {} pages too many", misfit.name, misfit.over);
    } else if severity > Severity::Ok
        && let Some(change) = sizings.iter().find_map(|sizing| survey.pool_change(sizing))
    {
        let who = if survey.stopped_needs().is_empty() { "running instance" } else { "instance, running or stopped" };
        text += &format!("; \"{change}\" covers every {who}");
    }
    (severity, of_stopped(text + "."))
}

/// The sentence on a host of which no instance that counts is seen: there is none, or that could not be determined.
pub fn no_instance(survey: &Survey) -> String {
    let why = match survey.meminfo {
        None => return "/proc of this host could not be read.".to_owned(),
        Some(_) if survey.processes_are_hidden => "hidepid hides the processes of other users. Run this as root.",
        Some(_) if survey.is_in_container => "this container shows no processes of the host. Run this on the host.",
        Some(_) if survey.strangers.count() > 0 => {
            return "No PostgreSQL and no Oracle instance of a service account runs here.".to_owned();
        }
        Some(_) => return "No PostgreSQL and no Oracle instance runs here.".to_owned(),
    };
    format!("Whether PostgreSQL or Oracle runs here could not be determined: {why}")
}

impl Instance {
    /// What Oracle's rules see of it; `None` for other products.
    fn advised_oracle(&self) -> Option<AdvisedOracle<'_>> {
        let id = &self.id;
        Some(AdvisedOracle {
            name: &id.name,
            owner: id.owner.as_deref(),
            service: id.service.as_deref(),
            memlock: self.memory.memlock.and_then(|memlock| memlock.soft),
            status: &self.status,
            oracle: id.oracle()?,
        })
    }
}

impl Survey {
    /// What Oracle's rules see of the host.
    fn advised_oracles(&self) -> AdvisedHost<'_> {
        AdvisedHost {
            running: self.instances.iter().filter_map(Instance::advised_oracle).collect(),
            stopped: &self.stopped,
            hides_pages: self.instances.iter().any(|instance| instance.landed().is_hidden()),
            meminfo: self.meminfo.as_ref(),
            pools: &self.pools,
            transparent_hugepage: self.transparent_hugepage.as_deref(),
            shm_is_ramfs: self.shm_is_ramfs,
            is_exadata: self.is_exadata,
            kernel_release: self.kernel_release.as_deref(),
        }
    }

    fn pool_change(&self, sizing: &Sizing) -> Option<String> {
        advice::pool::change(sizing, self.pool(sizing.page_size)?, self.is_default(sizing.page_size))
    }

    /// Whether mappings that request no size get huge pages of `size`.
    fn is_default(&self, size: PageSize) -> bool {
        self.default_page_size() == Some(size)
    }
}
