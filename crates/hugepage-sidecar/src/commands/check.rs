//! `check`: one line and an exit status for monitoring systems (Monitoring Plugins Development Guidelines).

use clap::Args;
use hugepage_assess::advice::{hint, message};
use hugepage_assess::assessment::{Severity, Sizing};
use hugepage_assess::pools;
use hugepage_host::{Instance, InstanceLanding, Survey, host_advice};
use hugepage_kernel::Root;

use super::survey::{SurveyOptions, survey_with_sizings};
use crate::exit::{self, Exit};
use crate::output::escape;
use crate::output::stream::say;

/// Options of `check`.
#[derive(Clone, Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    survey: SurveyOptions,
    /// Check only this instance: a SID, or a data directory
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
}

pub fn run(root: &Root, options: &CheckOptions) -> anyhow::Result<Exit> {
    options.survey.accounts.check(root)?;
    let (mut survey, sizings) = survey_with_sizings(root, &options.survey);
    if let Some(name) = &options.instance {
        survey.instances.retain(|instance| instance.id.name == *name);
        survey.stopped.retain(|stopped| stopped.name == *name);
    }
    let exit = match exit::of_survey(&survey) {
        exit::OK if survey.instances.is_empty() => exit::UNKNOWN,
        exit => exit,
    };
    say!(
        "HUGEPAGES {} - {}{}",
        exit.name(),
        escape::line(&worst_message(&survey, &sizings, options.instance.as_deref())),
        performance_data(&survey, &sizings)
    );
    Ok(exit)
}

/// The message of the instance with the worst verdict, running or stopped.
fn worst_message(survey: &Survey, sizings: &[Sizing], name: Option<&str>) -> String {
    let of_running = survey.instances.iter().map(|instance| instance.status.verdict().0).max();
    let stopped = survey.stopped.iter().max_by_key(|stopped| stopped.severity());
    if let Some(stopped) = stopped.filter(|stopped| match of_running {
        Some(of_running) => stopped.severity() > of_running.max(Severity::Notice),
        None => name.is_some() || stopped.severity() > Severity::Notice,
    }) {
        let hint = stopped.hint(sizings).map(|hint| format!(" {hint}")).unwrap_or_default();
        return format!("{}: {}{hint}", stopped.name, stopped.message()).replace('|', "/");
    }
    let severity = |instance: &&Instance| (instance.status.verdict().0, instance.landed().is_hidden());
    let Some(worst) = survey.instances.iter().max_by_key(severity) else {
        let not_counted = match survey.strangers.count() {
            0 => String::new(),
            count => format!("; {count} processes do not count, see \"hugepage-sidecar status\""),
        };
        return match name {
            Some(name) if survey.processes_are_hidden || survey.is_in_container => {
                format!("whether instance {name} runs could not be determined: run this on the host as root")
            }
            Some(name) => format!("instance {name} is not running on this host{not_counted}"),
            None => {
                let text = host_advice::no_instance(survey);
                format!("{}{not_counted}", text.strip_suffix('.').unwrap_or(&text))
            }
        };
    };
    let all_well = worst.status.verdict().0 == Severity::Ok && survey.instances.len() > 1;
    let text = match all_well {
        true if survey.instances.iter().all(|instance| instance.landed() == InstanceLanding::All) => {
            format!("all {} instances are in huge pages, also after a restart.", survey.instances.len())
        }
        true => format!("all {} instances are as configured, also after a restart.", survey.instances.len()),
        false => format!("{}: {}", worst.id.name, message(&worst.status)),
    };
    let hint = hint(&worst.status).filter(|_| !all_well).map(|hint| format!(" {hint}")).unwrap_or_default();
    // A vertical bar separates the performance data.
    format!("{text}{hint}").replace('|', "/")
}

/// Performance data: `name=value[unit]`.
fn performance_data(survey: &Survey, sizings: &[Sizing]) -> String {
    let landed = survey.instances.iter().filter(|instance| instance.landed() == InstanceLanding::All).count();
    let mut values = vec![format!("instances={}", survey.instances.len()), format!("instances_in_huge_pages={landed}")];
    let missing: Option<u64> = survey.instances.iter().map(|instance| Some(instance.status.missing?.0)).sum();
    values.extend(missing.map(|missing| format!("pages_missing={missing}")));
    let meminfo = survey.meminfo.as_ref();
    values.extend(meminfo.and_then(|meminfo| meminfo.page_tables).map(|tables| format!("page_tables={}B", tables.0)));
    for row in pools::of_host(&survey.pools) {
        let size = row.pool.page_size.cgroup_name();
        values.push(format!("nr_{size}={}", row.pool.nr));
        values.extend(row.pool.available().map(|pages| format!("available_{size}={pages}")));
        let recommended = Sizing::of_size(sizings, row.pool.page_size).and_then(|sizing| sizing.recommended);
        values.extend(recommended.map(|pages| format!("recommended_{size}={pages}")));
    }
    format!(" | {}", values.join(" "))
}
