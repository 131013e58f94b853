//! `check`: one line and an exit status for monitoring systems (Monitoring Plugins Development Guidelines).
//!
//! ```text
//! $ hugepage-sidecar check
//! HUGEPAGES OK - orcl: The SGA (8200 MB) is in 4100 huge pages of 2 MB, and a restart keeps them. | instances=1 instances_in_huge_pages=1 pages_missing=0 page_tables_host=20480000B nr_2MB=4100 available_2MB=0 recommended_2MB=4100
//! ```

use clap::Args;
use hugepage_assess::assessment::Severity;
use hugepage_facts::{Landing, escape, pools};
use hugepage_host::{HostVerdict, Survey};
use hugepage_kernel::Root;
use hugepage_sizing::Sizing;

use super::survey::ShowOptions;
use crate::exit::Exit;
use crate::output::say;

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Check only this instance: a SID, or a data directory
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
}

pub fn run(root: &Root, options: &CheckOptions) -> anyhow::Result<Exit> {
    let (mut survey, sizings) = options.show.survey_with_sizings(root)?;
    if let Some(name) = &options.instance {
        survey
            .instances
            .retain(|instance| instance.id.name == *name);
        survey.stopped.retain(|stopped| stopped.name == *name);
    }
    let verdict = HostVerdict::of_survey(&survey, &sizings);
    let exit = Exit::of_verdict(&verdict);
    let is_notice = exit == Exit::Ok && verdict.severity == Severity::Notice;
    say!(
        "HUGEPAGES {}{} - {}{}",
        exit.name(),
        if is_notice { " (notice)" } else { "" },
        // A vertical bar separates the performance data. No command has one, but a name may.
        escape::line(&text(&survey, verdict, options.instance.as_deref()).replace('|', "?")),
        performance_data(&survey, &sizings)
    );
    Ok(exit)
}

/// The message of the instance with the worst verdict, running or stopped; if all is well, one on all of them.
fn text(survey: &Survey, verdict: HostVerdict, name: Option<&str>) -> String {
    let count = survey.instances.len();
    if verdict.severity == Severity::Ok && count > 1 && !verdict.is_unknown {
        let how = if survey.landed_in(Landing::Hugetlb) == count {
            "in huge pages"
        } else {
            "as configured"
        };
        return format!("all {count} instances are {how}, also after a restart.");
    }
    let host = &survey.host;
    match (name, survey.stopped.first()) {
        (Some(_), Some(stopped)) if count == 0 && verdict.worst.is_none() => {
            return format!("{}: {}", stopped.name, stopped.message());
        }
        (Some(name), None) if count == 0 => {
            return if let Some(unread) = host.unread.first() {
                format!("instance {name} could not be inspected: {unread}")
            } else if host.processes_are_hidden || host.is_in_container {
                format!(
                    "whether instance {name} runs could not be determined: run this on the host as root"
                )
            } else {
                format!("instance {name} is not running on this host, or does not count")
            };
        }
        _ if verdict.is_unknown => {
            let mut instances = survey.instances.iter();
            let unknown = instances.find(|one| one.landed_in() == Landing::Unknown);
            let why = unknown.and_then(|one| one.notes.first());
            return verdict.state() + &why.map_or(String::new(), |why| format!(" ({why})"));
        }
        _ => {}
    }
    let text = verdict.worst.unwrap_or(verdict.summary);
    // What is no warning needs no command.
    let is_warning = verdict.severity >= Severity::Warning;
    match verdict.hint.filter(|_| is_warning) {
        Some(hint) => format!("{text} {hint}"),
        None => text,
    }
}

/// Performance data: `name=value[unit]`.
fn performance_data(survey: &Survey, sizings: &[Sizing]) -> String {
    let landed = survey.landed_in(Landing::Hugetlb);
    let mut values = vec![
        format!("instances={}", survey.instances.len()),
        format!("instances_in_huge_pages={landed}"),
    ];
    let missing: Option<u64> = survey
        .instances
        .iter()
        .map(|instance| Some(instance.status.missing?.0))
        .sum();
    values.extend(missing.map(|missing| format!("pages_missing={missing}")));
    let meminfo = survey.host.meminfo.as_ref();
    let tables = meminfo.and_then(|meminfo| meminfo.page_tables);
    values.extend(tables.map(|tables| format!("page_tables_host={}B", tables.0)));
    for row in pools::of_host(&survey.host.pools) {
        let size = row.pool.page_size.cgroup_name();
        values.push(format!("nr_{size}={}", row.pool.nr));
        values.extend(
            row.pool
                .available()
                .map(|pages| format!("available_{size}={pages}")),
        );
        let recommended =
            Sizing::of_size(sizings, row.pool.page_size).and_then(|sizing| sizing.recommended);
        values.extend(recommended.map(|pages| format!("recommended_{size}={pages}")));
    }
    format!(" | {}", values.join(" "))
}
