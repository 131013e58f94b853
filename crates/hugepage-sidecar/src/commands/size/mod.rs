//! `size`: the recommended size of every pool, for running and for stopped servers.

mod planned;
pub mod sizing;

use std::path::PathBuf;

use clap::Args;
use hugepage_kernel::{Pages, Root};

use self::planned::PlannedOptions;
use self::sizing::{HostSizing, PoolSizing, SessionsOutput, SizeOutput};
use super::survey::{ShowOptions, within};
use crate::exit::{self, Exit};
use crate::output::rows::NO_POOLS;
use crate::output::table::{or_unknown, print_notes, table, wrapped};
use crate::output::{Format, escape, json, say};
use crate::server_program::asked;

/// Options of `size`.
#[derive(Clone, Debug, Args)]
pub struct SizeOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Data directory of a stopped PostgreSQL server, in addition to those in the directories of packages
    #[arg(long, value_name = "DIR", conflicts_with = "snapshot")]
    postgresql_data: Vec<PathBuf>,
    /// Count running servers only
    #[arg(long)]
    running_only: bool,
    /// Predict the page tables of N sessions of each server, in 4 kB pages and in huge pages
    #[arg(long, value_name = "N", value_parser = within::<u64, 1, 1_000_000>)]
    sessions: Option<u64>,
    #[command(flatten)]
    planned: PlannedOptions,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn run(root: &Root, options: &SizeOptions) -> anyhow::Result<Exit> {
    if let Some(planned) = options.planned.run(root, options.format) {
        return planned;
    }
    let counts_stopped = !options.running_only;
    let ask = asked(root);
    let survey = options.show.survey(root, ask, |snapshot| {
        if counts_stopped {
            snapshot.find_stopped_clusters(root, &options.postgresql_data, ask);
        }
    })?;
    let sizing = HostSizing::new(survey, counts_stopped);
    let output = SizeOutput::new(&sizing, options.sessions);
    match options.format {
        Format::Json => json(&output)?,
        Format::Table => print(&output),
    }
    let survey = &sizing.survey;
    let sees_all = survey.host.meminfo.is_some() && !survey.host.processes_are_hidden && survey.host.unread.is_empty();
    let known = sees_all && output.not_counted.iter().all(|one| one.is_known);
    let complete = known && output.pools.iter().all(|pool| pool.recommended_nr_hugepages.is_some());
    Ok(match output.pools.iter().any(|pool| !pool.does_not_fit.is_empty()) {
        true => exit::WARNING,
        false if complete => exit::OK,
        false => exit::UNKNOWN,
    })
}

fn print(output: &SizeOutput) {
    for pool in &output.pools {
        print_pool(pool);
    }
    if output.pools.is_empty() {
        say!("{NO_POOLS}");
    }
    if let Some(sessions) = &output.sessions {
        print_sessions(sessions);
    }
    for one in &output.not_counted {
        say!("{}", wrapped(&format!("not counted: {} {}: {}", one.kind, one.instance, one.reason), 0, 2));
    }
    print_notes(&output.notes, 0);
}

fn print_pool(pool: &PoolSizing) {
    print_recommended(pool);
    print_needs(pool);
    if pool.held_by_strangers > Pages(0) {
        let (pages, beside) = (pool.held_by_strangers, pool.needed_in_all.saturating_add(pool.held_by_strangers));
        let text = format!(
            "not counted: {pages} pages that {} holds (--service-account counts them); beside them {beside} are needed",
            pool.strangers
        );
        say!("{}", wrapped(&text, 2, 4));
    }
    for misfit in &pool.does_not_fit {
        let capacity = or_unknown(pool.capacity);
        let text = format!(
            "{} does not fit: its {} pages are {} more than this host can provide beside the others; the capacity is {capacity} pages; it counts with {}",
            misfit.name, misfit.pages, misfit.over, misfit.counted
        );
        say!("{}", wrapped(&text, 2, 4));
    }
    if let Some(remains) = pool.remains_for_base_pages {
        say!("  {remains} remain for base pages");
    }
    if let Some(caution) = &pool.caution {
        say!("  caution: {caution}");
    }
    if let Some(command) = &pool.command {
        say!("  {command}");
    }
    say!();
}

/// The recommended number, beside the present one.
fn print_recommended(pool: &PoolSizing) {
    let size = pool.page_size;
    // What other outputs do not count, and what nobody is known to need.
    let needed = match pool.recommended_nr_hugepages {
        Some(pages) if pages > pool.needed_in_all => format!("{} needed by ", pool.needed_in_all),
        _ => String::new(),
    };
    let of = pool.by_stopped.as_ref().map_or(String::new(), |clause| format!(", {clause}"));
    let more = format!("; {needed}all of the host{}{of}", if pool.does_not_fit.is_empty() { "" } else { " that fits" });
    // The kernel's parameter is without surplus pages.
    let now = match pool.surplus {
        Pages(0) => pool.nr_hugepages.to_string(),
        surplus => format!("{} and {surplus} surplus", pool.nr_hugepages.saturating_sub(surplus)),
    };
    match pool.recommended_nr_hugepages {
        Some(Pages(0)) if pool.needed_in_all == Pages(0) => {
            say!("pages of {size}: no server is known to need any, and the pool has none")
        }
        Some(pages) if pool.is_default => say!("vm.nr_hugepages = {pages}   (pages of {size}, now {now}{more})"),
        Some(pages) => say!("{pages} page{} of {size}   (now {now}{more})", if pages == Pages(1) { "" } else { "s" }),
        None => say!("pages of {size}: no recommendation, the need of an instance is unknown (now {now})"),
    }
}

/// What each server needs and has.
fn print_needs(pool: &PoolSizing) {
    let mut rows = table(&["  INSTANCE", "STATE", "NEEDED", "HELD"], 2);
    for need in &pool.needs {
        rows.add_row(vec![
            format!("  {}", escape::line(&need.name)),
            if need.is_running { "running" } else { "down" }.to_owned(),
            need.pages.to_string(),
            need.held.to_string(),
        ]);
    }
    if pool.held_by_others > pool.held_by_strangers {
        let held = pool.held_by_others.saturating_sub(pool.held_by_strangers).to_string();
        let is_known = pool.recommended_nr_hugepages.is_some();
        let who = if is_known { "  (others)" } else { "  (others, or not inspected)" };
        rows.add_row(vec![who.to_owned(), String::new(), held.clone(), held]);
    }
    if rows.row_count() > 0 {
        say!("{}", rows.trim_fmt());
    }
}

fn print_sessions(sessions: &SessionsOutput) {
    let title = format!(
        "page tables of {} sessions, as if each had touched all shared memory, with OWN for other memory of each:",
        sessions.sessions
    );
    say!("{}", wrapped(&title, 0, 2));
    let mut rows = table(&["  INSTANCE", "SHARED", "OWN", "4 KB PAGES", "HUGE PAGES"], 1);
    for row in &sessions.instances {
        rows.add_row(vec![
            format!("  {}", escape::line(&row.instance)),
            row.shared_memory.to_string(),
            or_unknown(row.own_per_session),
            row.page_tables_base.to_string(),
            or_unknown(row.page_tables_huge),
        ]);
    }
    say!("{}\n", rows.trim_fmt());
}
