//! The verdict on a host: the most severe of its instances, in the words that all commands print.

use std::cmp::Reverse;

use hugepage_assess::advice::{hint, message};
use hugepage_assess::assessment::Severity;
use hugepage_facts::{HostFacts, Landing};
use hugepage_oracle::stopped::StoppedOracle;
use hugepage_sizing::Sizing;

use crate::{IN_CONTAINER, Instance, Survey};

/// What is said of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostVerdict {
    /// The most severe severity that was found.
    pub severity: Severity,
    /// Whether there may be a graver one that could not be seen, or nothing runs that could be judged.
    pub is_unknown: bool,
    /// One sentence on all instances.
    pub summary: String,
    /// The message of the most severe instance, behind its name; `None` if there is none.
    pub worst: Option<String>,
    /// The hint of that instance.
    pub hint: Option<String>,
}

impl HostVerdict {
    /// The verdict on all instances that count.
    pub fn of_survey(survey: &Survey, sizings: &[Sizing]) -> Self {
        let severity = |instance: &&Instance| {
            (
                instance.status.verdict().0,
                instance.landed_in() == Landing::Unknown,
            )
        };
        let running = survey.instances.iter().max_by_key(severity);
        let stopped = survey
            .stopped
            .iter()
            .max_by_key(|stopped| (stopped.severity(), Reverse(&stopped.name)));
        // That an instance is stopped is no finding on those that run.
        let of_stopped = stopped
            .map(StoppedOracle::severity)
            .filter(|severity| *severity > Severity::Notice);
        let of_running = running.map(|running| running.status.verdict().0);
        let severity = of_running.max(of_stopped).unwrap_or(Severity::Notice);
        let cannot_see = survey.host.meminfo.is_none()
            || survey.host.processes_are_hidden
            || !survey.host.unread.is_empty();
        let is_hidden = cannot_see || running.is_none() || survey.landed_in(Landing::Unknown) > 0;
        let is_unknown = severity < Severity::Warning && is_hidden;
        let (worst, hint) = match (running, stopped) {
            // The summary says it.
            (Some(running), _) if is_unknown && running.is_closed() => (None, None),
            (Some(running), _) if of_running >= of_stopped => (
                Some(format!("{}: {}", name(running), message(&running.status))),
                hint(&running.status),
            ),
            (_, Some(stopped)) if of_stopped.is_some() => (
                Some(format!("{}: {}", stopped.name, stopped.message())),
                super::hint_of_stopped(survey, stopped, sizings),
            ),
            _ => (None, None),
        };
        Self {
            severity,
            is_unknown,
            summary: summary(survey),
            worst,
            hint,
        }
    }

    /// The severity as a word, or `unknown`.
    pub fn name(&self) -> String {
        if self.is_unknown {
            "unknown".to_owned()
        } else {
            self.severity.to_string()
        }
    }

    /// The summary, and what is wrong.
    pub fn state(&self) -> String {
        let worst = self
            .worst
            .as_ref()
            .filter(|_| self.severity > Severity::Ok || self.is_unknown);
        worst.map_or_else(
            || self.summary.clone(),
            |worst| format!("{} {worst}", self.summary),
        )
    }

    /// The state, and what to do.
    pub fn message(&self) -> String {
        self.hint
            .as_ref()
            .map_or_else(|| self.state(), |hint| format!("{} {hint}", self.state()))
    }
}

/// Its name, and its pod or container: in many of them all servers have the same directory.
fn name(instance: &Instance) -> String {
    let id = &instance.id;
    match id.pod.as_ref().or(id.runtime.as_ref()) {
        Some(place) => format!("{} in {place}", id.name),
        None => id.name.clone(),
    }
}

fn summary(survey: &Survey) -> String {
    let count = survey.instances.len();
    let others = survey.host.strangers.count();
    let landed = survey.landed_in(Landing::Hugetlb);
    let unknown = survey.landed_in(Landing::Unknown);
    let remedy = if survey.instances.iter().any(Instance::is_closed) {
        ": run this on the host as root"
    } else {
        ""
    };
    let are = if landed == 1 { "is" } else { "are" };
    let mut text = match (count, landed) {
        (0, _) => return no_instance(&survey.host),
        (1, 1) => "The one instance is in huge pages".to_owned(),
        (1, _) if unknown == 1 => format!("The one instance could not be inspected{remedy}"),
        (1, _) if survey.instances[0].landed_in() == Landing::Base => {
            "The one instance is not in huge pages".to_owned()
        }
        (1, _) => "The one instance is not completely in huge pages".to_owned(),
        _ if unknown == count => format!("{count} instances could not be inspected{remedy}"),
        _ if landed == count => format!("All {count} instances are in huge pages"),
        _ if unknown > 0 => {
            format!(
                "{landed} of {count} instances {are} in huge pages, {unknown} could not be inspected{remedy}"
            )
        }
        _ => format!("{landed} of {count} instances {are} in huge pages"),
    };
    if others > 0 {
        text += &format!(" ({others} more not counted)");
    }
    if let Some(unread) = survey.host.unread.first() {
        text += &format!("; {unread}");
    }
    if survey.host.processes_are_hidden {
        text += "; hidepid may hide others: run this as root";
    }
    text + "."
}

/// The sentence on a host of which no instance that counts is seen: there is none, or that could not be determined.
fn no_instance(host: &HostFacts) -> String {
    let why = match host.unread.first() {
        _ if host.meminfo.is_none() => return "/proc of this host could not be read.".to_owned(),
        _ if host.processes_are_hidden => {
            "hidepid hides the processes of other users. Run this as root".to_owned()
        }
        Some(unread) => unread.to_string(),
        None if host.is_in_container => IN_CONTAINER.to_owned(),
        None if host.strangers.count() > 0 => {
            return "No PostgreSQL and no Oracle instance of a service account runs here."
                .to_owned();
        }
        None => return "No PostgreSQL and no Oracle instance runs here.".to_owned(),
    };
    format!("Whether PostgreSQL or Oracle runs here could not be determined: {why}.")
}
