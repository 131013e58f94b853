//! `size`: the recommended size of every pool, for running and for stopped servers.
//!
//! ```text
//! $ hugepage-sidecar size --sessions 1024
//! Counted: 1 running, 0 stopped. For others: --postgresql-data DIR
//! vm.nr_hugepages = 4100   (pages of 2 MB, now 4100; all of the host)
//!   INSTANCE STATE   NEEDED HELD
//!   orcl     running   4100 4100
//!   55.9 GB remain for base pages
//!
//! page tables of 1024 sessions, as if each had touched all shared memory, with OWN
//!   for other memory of each:
//!   INSTANCE  SHARED    OWN 4 KB PAGES HUGE PAGES
//!   orcl     8200 MB 100 kB    16.1 GB     108 MB
//! ```

mod planned;
pub mod sizing;

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use hugepage_kernel::{Pages, Root};
use hugepage_sizing::PoolNeed;

use self::planned::PlannedOptions;
use self::sizing::{HostSizing, PoolSizing, SessionsOutput, SizeOutput};
use super::survey::{ShowOptions, within};
use crate::exit::Exit;
use crate::history::remembered::forget;
use crate::output::rows::NO_POOLS;
use crate::output::table::{or_unknown, print_notes, print_wrapped, table};
use crate::output::{escape, json, say};
use crate::privileges::Needs;
use crate::server_program::asked;

/// Options of `size`.
#[derive(Debug, Args)]
pub struct SizeOptions {
    #[command(flatten)]
    show: ShowOptions,
    /// Data directory of a stopped PostgreSQL server; see also /etc/hugepage-sidecar/postgresql-data
    #[arg(long, value_name = "DIR", conflicts_with = "snapshot")]
    postgresql_data: Vec<PathBuf>,
    /// Count the server in DIR, or of this SID, no more, which was seen here and is gone
    #[arg(long, value_name = "DIR", conflicts_with_all = ["snapshot", "root"])]
    forget: Vec<String>,
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
    format: SizeFormat,
}

/// An output format of `size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SizeFormat {
    /// A table for people, 80 columns wide; colour on a terminal only.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// The limits of a pod, for a manifest, of a server that is only planned.
    Kubernetes,
}

impl SizeOptions {
    /// The privileges that the command needs.
    pub fn needs(&self) -> Needs {
        if self.forget.is_empty() {
            Needs::default()
        } else {
            Needs::default().directory(&self.show.survey.state_dir)
        }
    }
}

pub fn run(root: &Root, options: &SizeOptions) -> anyhow::Result<Exit> {
    if let Some(planned) = options.planned.run(root, options.format) {
        return planned;
    }
    for name in &options.forget {
        if let Some(error) = forget(root, &options.show.survey.state_dir, name)?.pop() {
            bail!("{name} could not be forgotten: {error}");
        }
    }
    let stopped = (!options.running_only).then_some(&*options.postgresql_data);
    let survey = options.show.survey(root, asked(root), stopped)?;
    let sizing = HostSizing::new(survey, stopped.is_some());
    let output = SizeOutput::new(&sizing, options.sessions);
    match options.format {
        SizeFormat::Json => json(&output)?,
        SizeFormat::Table | SizeFormat::Kubernetes => print(&output),
    }
    let survey = &sizing.survey;
    let sees_all = survey.host.meminfo.is_some()
        && !survey.host.processes_are_hidden
        && !survey.host.is_in_container
        && survey.host.unread.is_empty();
    let is_complete = sees_all
        && output.not_counted.iter().all(|one| one.is_known)
        && output
            .pools
            .iter()
            .all(|pool| pool.recommended_nr_hugepages.is_some());
    let mut pools = output.pools.iter();
    Ok(if pools.any(|pool| !pool.does_not_fit.is_empty()) {
        Exit::Warning
    } else if is_complete {
        Exit::Ok
    } else {
        Exit::Unknown
    })
}

fn print(output: &SizeOutput) {
    say!("{}", output.counted);
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
        print_wrapped(
            &format!("not counted: {} {}: {}", one.kind, one.instance, one.reason),
            0,
            2,
        );
    }
    print_notes(&output.notes, 0);
}

fn print_pool(pool: &PoolSizing) {
    print_recommended(pool);
    print_needs(pool);
    if pool.held_by_strangers > Pages(0) {
        let pages = pool.held_by_strangers;
        let beside = pool.needed_in_all.saturating_add(pool.held_by_strangers);
        let remedy = match &pool.removal {
            Some(removal) => format!(": to free them {removal}"),
            None => format!(" (--service-account counts them); beside them {beside} are needed"),
        };
        let text = format!(
            "not counted: {pages} pages that {} holds{remedy}",
            pool.strangers
        );
        print_wrapped(&text, 2, 4);
    }
    for misfit in &pool.does_not_fit {
        let capacity = or_unknown(pool.capacity);
        let text = format!(
            "{} does not fit: its {} pages are {} more than this host can provide beside the others; the capacity is {capacity} pages; it counts with {}",
            misfit.name, misfit.pages, misfit.over, misfit.counted
        );
        print_wrapped(&text, 2, 4);
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
    let of = pool
        .by_stopped
        .as_ref()
        .map_or(String::new(), |clause| format!(", {clause}"));
    let more = format!(
        "; {needed}all of the host{}{of}",
        if pool.does_not_fit.is_empty() {
            ""
        } else {
            " that fits"
        }
    );
    // The kernel's parameter is without surplus pages.
    let now = match pool.surplus {
        Pages(0) => pool.nr_hugepages.to_string(),
        surplus => format!(
            "{} and {surplus} surplus",
            pool.nr_hugepages.saturating_sub(surplus)
        ),
    };
    match pool.recommended_nr_hugepages {
        Some(Pages(0)) if pool.needed_in_all == Pages(0) => {
            say!("pages of {size}: none of those that are counted needs any, and the pool has none")
        }
        Some(pages) if pool.is_default => {
            say!("vm.nr_hugepages = {pages}   (pages of {size}, now {now}{more})")
        }
        Some(pages) => say!(
            "{pages} page{} of {size}   (now {now}{more})",
            if pages == Pages(1) { "" } else { "s" }
        ),
        None => say!(
            "pages of {size}: no recommendation, the need of an instance is unknown (now {now})"
        ),
    }
}

/// What each server needs and has.
fn print_needs(pool: &PoolSizing) {
    let mut rows = table("  INSTANCE,STATE,NEEDED,HELD", 2);
    for need in &pool.needs {
        rows.add_row([
            format!("  {}", escape::line(&need.name)),
            state(need),
            need.pages.to_string(),
            need.held.to_string(),
        ]);
    }
    if pool.held_by_others > pool.held_by_strangers {
        let held = pool
            .held_by_others
            .saturating_sub(pool.held_by_strangers)
            .to_string();
        let who = match pool.recommended_nr_hugepages {
            Some(_) => "  (others)",
            None => "  (others, or not inspected)",
        };
        rows.add_row([who, "", &held, &held]);
    }
    if rows.row_count() > 0 {
        say!("{}", rows.trim_fmt());
    }
}

/// Whether it runs, and if not what is said beside it.
fn state(need: &PoolNeed) -> String {
    match (need.is_running, &need.remark) {
        (true, _) => "running".to_owned(),
        (false, Some(remark)) => format!("down, {remark}"),
        (false, None) => "down".to_owned(),
    }
}

fn print_sessions(sessions: &SessionsOutput) {
    let title = format!(
        "page tables of {} sessions, as if each had touched all shared memory, with OWN for other memory of each:",
        sessions.sessions
    );
    print_wrapped(&title, 0, 2);
    let mut rows = table("  INSTANCE,SHARED,OWN,4 KB PAGES,HUGE PAGES", 1);
    for row in &sessions.instances {
        rows.add_row([
            format!("  {}", escape::line(&row.instance)),
            row.shared_memory.to_string(),
            or_unknown(row.own_per_session),
            row.page_tables_base.to_string(),
            or_unknown(row.page_tables_huge),
        ]);
    }
    say!("{}\n", rows.trim_fmt());
}
