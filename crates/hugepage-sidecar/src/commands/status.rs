//! `status`: every instance, the pools, and one verdict.
//!
//! ```text
//! $ hugepage-sidecar status
//! db01  2026-12-01T00:00:00Z
//!
//! OK: The one instance is in huge pages.
//!
//! INSTANCE    LANDED   MEMORY NEEDED HELD MISSING PAGE TABLES   MEMLOCK
//! oracle orcl hugetlb 8200 MB   4100 4100       0      200 kB unlimited
//!
//! oracle orcl: 8200 MB in pages of 2 MB
//!
//! PAGE SIZE   NR FREE RESV SURPLUS AVAILABLE INSTANCES OTHERS RECOMMENDED
//!      2 MB 4100    0    0       0         0      4100      0        4100
//! ```

use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use hugepage_assess::StatusRow;
use hugepage_assess::assessment::Severity;
use hugepage_facts::{PoolHolder, Strangers, escape};
use hugepage_host::host_advice::HostRecommendation;
use hugepage_host::{HostVerdict, SERVICE_ACCOUNTS, Survey};
use hugepage_kernel::{Pages, Root};

use super::survey::ShowOptions;
use crate::exit::Exit;
use crate::output::rows::{
    HostOutput, InstanceRow, NO_POOLS, PageSizeShare, PoolOutput, RECOMMENDED_COUNTS, StoppedRow,
};
use crate::output::table::{
    colored, or_unknown, print_notes, print_wrapped, table, wrapped, wrapped_instruction,
};
use crate::output::{json, say, stdout};

/// An output format.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum StatusFormat {
    /// A table for people, 80 columns wide; colour on a terminal only.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated values with a header line (RFC 4180), one line per instance.
    Csv,
}

/// Options of `status`.
#[derive(Debug, Args)]
pub struct StatusOptions {
    #[command(flatten)]
    pub show: ShowOptions,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: StatusFormat,
}

pub fn run(root: &Root, options: &StatusOptions) -> anyhow::Result<Exit> {
    let (survey, sizings) = options.show.survey_with_sizings(root)?;
    let out = HostOutput::new(&survey, &sizings);
    let verdict = HostVerdict::of_survey(&survey, &sizings);
    match options.format {
        StatusFormat::Json => json(&out)?,
        StatusFormat::Csv => csv(&out)?,
        StatusFormat::Table => print(&out, &survey, &verdict),
    }
    Ok(Exit::of_verdict(&verdict))
}

/// Prints CSV, one line per instance. A list is one field, with semicolons between its parts, an object its values.
fn csv(out: &HostOutput) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(stdout());
    let names = InstanceRow::NAMES.iter().flat_map(|name| match *name {
        "status" => StatusRow::NAMES,
        _ => std::slice::from_ref(name),
    });
    writer.write_record(names)?;
    for row in &out.instances {
        let serde_json::Value::Object(fields) = serde_json::to_value(row)? else {
            continue;
        };
        writer.write_record(fields.values().map(field))?;
    }
    writer.flush()?;
    Ok(())
}

fn field(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => escape::line(text).into_owned(),
        serde_json::Value::Array(parts) => parts.iter().map(field).collect::<Vec<_>>().join("; "),
        serde_json::Value::Object(named) => named.values().map(field).collect::<Vec<_>>().join(":"),
        other => other.to_string(),
    }
}

fn print(out: &HostOutput, survey: &Survey, verdict: &HostVerdict) {
    say!(
        "{}  {}\n",
        escape::line(out.host_name.as_deref().unwrap_or("unknown host")),
        out.taken_at
    );
    print_wrapped(
        &format!("{}: {}", out.verdict.to_uppercase(), verdict.state()),
        0,
        2,
    );
    if let Some(hint) = &verdict.hint {
        say!("{}", wrapped_instruction(hint, 2, 2));
    }
    say!();
    if !out.instances.is_empty() {
        let mut rows = table(
            "INSTANCE,LANDED,MEMORY,NEEDED,HELD,MISSING,PAGE TABLES,MEMLOCK",
            2,
        );
        for row in &out.instances {
            let status = &row.status;
            rows.add_row([
                label(row).into(),
                colored(status.landed_in, status.verdict),
                or_unknown(status.shared_memory).into(),
                or_unknown(status.pages_needed).into(),
                or_unknown(status.pages_held).into(),
                or_unknown(status.pages_missing).into(),
                or_unknown(row.page_tables_total).into(),
                if row.memlock_unlimited == Some(true) {
                    "unlimited".into()
                } else {
                    or_unknown(row.memlock).into()
                },
            ]);
        }
        say!("{}\n", rows.trim_fmt());
        for (row, instance) in out.instances.iter().zip(&survey.instances) {
            let of_it = out
                .recommendations
                .iter()
                .filter(|one| one.instance.as_deref() == Some(&row.name));
            if instance.is_closed() && row.status.verdict < Severity::Warning {
                say!(
                    "{}: could not be inspected: run this on the host as root\n",
                    label(row)
                )
            } else {
                print_details(row, of_it)
            }
        }
    }
    print_strangers(&survey.host.strangers);
    out.stopped.iter().for_each(print_stopped);
    print_pools(&out.pools);
    survey.host.holders.iter().for_each(print_holder);
    for one in out
        .recommendations
        .iter()
        .filter(|one| one.instance.is_none() && !one.is_in_hint)
    {
        say!();
        print_recommendation(one, 0);
    }
    print_notes(&out.notes, 0);
}

fn print_details<'a>(
    row: &InstanceRow,
    recommendations: impl Iterator<Item = &'a HostRecommendation>,
) {
    let of_size = |share: &PageSizeShare| {
        let size = share
            .page_size
            .map_or("unknown size".to_owned(), |size| size.to_string());
        format!("{} in pages of {size}", share.bytes)
    };
    let pieces = row
        .by_page_size
        .iter()
        .map(of_size)
        .collect::<Vec<_>>()
        .join(", ");
    let pieces = if pieces.is_empty() {
        "its shared memory was not seen"
    } else {
        &pieces
    };
    let place = row.pod.as_ref().or(row.container.as_ref());
    let place = place.map_or(String::new(), |place| {
        format!(" in {}", escape::line(place))
    });
    print_wrapped(&format!("{}{place}: {pieces}", label(row)), 0, 2);
    let status = &row.status;
    if status.verdict != Severity::Ok {
        print_wrapped(&format!("{}: {}", status.verdict, status.message), 2, 4);
        if let Some(hint) = &status.hint {
            say!("{}", wrapped_instruction(hint, 2, 4));
        }
    }
    for one in recommendations.filter(|one| !one.is_in_hint) {
        print_recommendation(one, 2);
    }
    print_notes(&row.notes, 2);
    say!();
}

/// A line for each process that calls itself a server and does not count.
fn print_strangers(strangers: &Strangers) {
    for one in &strangers.first {
        print_wrapped(&format!("not counted: {one}"), 0, 2);
    }
    if strangers.more > 0 {
        say!("not counted: {} more", strangers.more);
    }
    if strangers.count() > 0 {
        say!(
            "{}\n",
            wrapped(
                &format!("{SERVICE_ACCOUNTS} lists users whose servers count, too."),
                0,
                2
            )
        );
    }
}

fn print_stopped(row: &StoppedRow) {
    print_wrapped(
        &format!(
            "{} {}: {}: {}",
            row.kind,
            escape::line(&row.name),
            row.verdict,
            row.message
        ),
        0,
        2,
    );
    if let Some(hint) = &row.hint {
        say!("{}", wrapped_instruction(hint, 2, 4));
    }
    print_notes(&row.notes, 2);
    say!();
}

fn print_recommendation(one: &HostRecommendation, indent: usize) {
    let one = &one.recommendation;
    print_wrapped(
        &format!("{}: {}: {}", one.severity, one.setting, one.reason),
        indent,
        indent + 2,
    );
    if let Some(command) = &one.command {
        say!("{}{}", " ".repeat(indent), escape::line(command));
    }
}

/// The pools of the host; below each its shares on the NUMA nodes, if there are several.
fn print_pools(pools: &[PoolOutput]) {
    let mut rows = table(
        "PAGE SIZE,NR,FREE,RESV,SURPLUS,AVAILABLE,INSTANCES,OTHERS,RECOMMENDED",
        0,
    );
    let nodes: BTreeSet<_> = pools.iter().filter_map(|row| row.pool.node).collect();
    let of_host = pools.iter().filter(|row| row.pool.node.is_none());
    let with_nodes = of_host.flat_map(|host| {
        let is_share = |row: &&PoolOutput| {
            row.pool.page_size == host.pool.page_size && row.pool.node.is_some()
        };
        let has_shares = nodes.len() > 1 && host.pool.nr_hugepages > Pages(0);
        std::iter::once(host).chain(pools.iter().filter(is_share).filter(move |_| has_shares))
    });
    for row in with_nodes {
        let pool = &row.pool;
        // The kernel counts these for the host alone.
        let or_nothing = match pool.node {
            Some(_) => or_empty,
            None => or_unknown,
        };
        rows.add_row([
            pool.node.map_or_else(
                || pool.page_size.to_string(),
                |node| format!("  node {node}"),
            ),
            pool.nr_hugepages.to_string(),
            pool.free_hugepages.to_string(),
            or_nothing(pool.resv_hugepages),
            or_unknown(pool.surplus_hugepages),
            or_nothing(pool.available_hugepages),
            or_empty(row.held_by_instances),
            or_empty(row.held_by_others),
            or_empty(row.recommended_nr_hugepages),
        ]);
    }
    if pools.is_empty() {
        say!("{NO_POOLS}")
    } else {
        say!("{}", rows.trim_fmt())
    }
    if pools
        .iter()
        .any(|row| row.recommended_nr_hugepages.is_some())
    {
        print_wrapped(&format!("RECOMMENDED {RECOMMENDED_COUNTS}."), 0, 2);
    }
}

fn print_holder(holder: &PoolHolder) {
    let pages = holder
        .pages
        .map_or(String::new(), |pages| format!("{pages} pages, "));
    let processes = if holder.processes == 1 {
        "process"
    } else {
        "processes"
    };
    let what = format!(
        "{holder} {} {pages}{} ({} {processes})",
        holder.verb(),
        holder.memory,
        holder.processes
    );
    print_wrapped(&what, 0, 2);
}

fn or_empty(pages: Option<Pages>) -> String {
    pages.map_or(String::new(), |pages| pages.to_string())
}

/// The kind and the name of an instance; a long path is cut at its beginning.
fn label(row: &InstanceRow) -> String {
    const MAX_NAME_CHARS: usize = 18;
    let kind = if row.kind == "postgresql" {
        "pg"
    } else {
        &row.kind
    };
    let name = escape::line(&row.name);
    match name.chars().count().saturating_sub(MAX_NAME_CHARS) {
        0 => format!("{kind} {name}"),
        surplus => format!(
            "{kind} …{}",
            name.chars().skip(surplus + 1).collect::<String>()
        ),
    }
}
