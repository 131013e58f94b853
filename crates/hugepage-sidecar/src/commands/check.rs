//! `check`: one line and an exit status for monitoring systems (Monitoring Plugins Development Guidelines).

use clap::Args;
use hugepage_assess::assessment::Severity;
use hugepage_assess::model::Landing;
use hugepage_assess::pools;
use hugepage_host::Survey;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_kernel::Root;
use hugepage_sizing::Sizing;

use super::survey::ShowOptions;
use crate::exit::{self, Exit};
use crate::output::{escape, say};

/// Options of `check`.
#[derive(Clone, Debug, Args)]
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
        survey.instances.retain(|instance| instance.id.name == *name);
        survey.host.stopped.retain(|stopped| stopped.name == *name);
    }
    let verdict = HostVerdict::of_survey(&survey, &sizings);
    let exit = exit::of_verdict(&verdict);
    let is_notice = exit == exit::OK && verdict.severity == Severity::Notice;
    say!(
        "HUGEPAGES {}{} - {}{}",
        exit.name,
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
        let are_all_in_huge_pages = survey.instances.iter().all(|instance| instance.landed_in() == Landing::Hugetlb);
        let how = if are_all_in_huge_pages { "in huge pages" } else { "as configured" };
        return format!("all {count} instances are {how}, also after a restart.");
    }
    match (name, survey.host.stopped.first()) {
        (Some(_), Some(stopped)) if count == 0 && verdict.worst.is_none() => {
            format!("{}: {}", stopped.name, stopped.message())
        }
        (Some(name), None) if count == 0 && (survey.host.processes_are_hidden || survey.host.is_in_container) => {
            format!("whether instance {name} runs could not be determined: run this on the host as root")
        }
        (Some(name), None) if count == 0 => format!("instance {name} is not running on this host, or does not count"),
        // What is no warning needs no command.
        _ if verdict.is_unknown => verdict.state(),
        _ => match verdict.hint.filter(|_| verdict.severity >= Severity::Warning) {
            Some(hint) => format!("{} {hint}", verdict.worst.unwrap_or(verdict.summary)),
            None => verdict.worst.unwrap_or(verdict.summary),
        },
    }
}

/// Performance data: `name=value[unit]`.
fn performance_data(survey: &Survey, sizings: &[Sizing]) -> String {
    let landed = survey.instances.iter().filter(|instance| instance.landed_in() == Landing::Hugetlb).count();
    let mut values = vec![format!("instances={}", survey.instances.len()), format!("instances_in_huge_pages={landed}")];
    let missing: Option<u64> = survey.instances.iter().map(|instance| Some(instance.status.missing?.0)).sum();
    values.extend(missing.map(|missing| format!("pages_missing={missing}")));
    let tables = survey.host.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables);
    values.extend(tables.map(|tables| format!("page_tables_host={}B", tables.0)));
    for row in pools::of_host(&survey.host.pools) {
        let size = row.pool.page_size.cgroup_name();
        values.push(format!("nr_{size}={}", row.pool.nr));
        values.extend(row.pool.available().map(|pages| format!("available_{size}={pages}")));
        let recommended = Sizing::of_size(sizings, row.pool.page_size).and_then(|sizing| sizing.recommended);
        values.extend(recommended.map(|pages| format!("recommended_{size}={pages}")));
    }
    format!(" | {}", values.join(" "))
}
