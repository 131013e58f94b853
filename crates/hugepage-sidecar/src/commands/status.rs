//! `status`: a row for each instance, the pools, and one verdict.

use std::path::PathBuf;

use clap::Args;
use hugepage_core::assess::Sizing;
use hugepage_core::collect::instances::{Survey, survey_for};
use hugepage_core::read::Root;

use crate::exit::{self, Exit};
use crate::history::Past;
use crate::output::rows::{HostOut, InstanceRow, PoolOut, RecommendationOut, host};
use crate::output::table::{graded, or_unknown, size, table, wrapped};
use crate::output::{Format, json};

/// What every look at a host takes.
#[derive(Clone, Debug, Args)]
pub struct Look {
    /// Keep this much of the host's memory for base pages, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=90))]
    pub reserve_percent: u32,
    /// Where `watch` keeps the history of each instance
    #[arg(long, value_name = "DIR", default_value = crate::state::DIRECTORY)]
    pub state_dir: PathBuf,
    #[command(flatten)]
    pub accounts: Accounts,
}

/// Whose servers count beside those of system users and of accounts with the usual names.
#[derive(Clone, Debug, Default, Args)]
pub struct Accounts {
    /// Count the servers of this user too, by its name or uid; more can be in /etc/hugepage-sidecar/service-accounts
    #[arg(long, value_name = "USER")]
    pub service_account: Vec<String>,
}

/// Options of `status`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    #[command(flatten)]
    pub look: Look,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Looks at the host and at its instances' past.
pub fn look_at(root: &Root, look: &Look) -> Survey {
    let mut survey = survey_for(root, look.reserve_percent, &look.accounts.service_account);
    Past::of(root, &look.state_dir).tell(&mut survey);
    survey
}

/// The same, with its pools as they should be for what runs.
pub fn look(root: &Root, look: &Look) -> (Survey, Vec<Sizing>) {
    let survey = look_at(root, look);
    let sizings = survey.sizings(&[], look.reserve_percent);
    (survey, sizings)
}

pub fn run(root: &Root, options: &Options) -> anyhow::Result<Exit> {
    let (survey, sizings) = look(root, &options.look);
    let out = host(&survey, &sizings);
    match options.format {
        Format::Json => json(&out)?,
        Format::Csv => csv(&out)?,
        Format::Table => print(&out, &survey),
    }
    Ok(exit::of(&survey))
}

/// A line for each instance; a list is one field, its parts behind semicolons, and of a part with names the values alone.
fn csv(out: &HostOut) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(std::io::stdout());
    for (index, row) in out.instances.iter().enumerate() {
        let serde_json::Value::Object(fields) = serde_json::to_value(row)? else { continue };
        if index == 0 {
            writer.write_record(fields.keys())?;
        }
        writer.write_record(fields.values().map(field))?;
    }
    writer.flush()?;
    Ok(())
}

fn field(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(parts) => parts.iter().map(field).collect::<Vec<_>>().join("; "),
        serde_json::Value::Object(named) => named.values().map(field).collect::<Vec<_>>().join(":"),
        other => other.to_string(),
    }
}

fn print(out: &HostOut, survey: &Survey) {
    println!("{}  {}\n", out.host_name.as_deref().unwrap_or("unknown host"), out.taken_at);
    if !out.instances.is_empty() {
        let mut rows =
            table(&["INSTANCE", "LANDED", "MEMORY", "NEEDED", "USED", "MISSING", "PAGE TABLES", "MEMLOCK"], 2);
        for (row, instance) in out.instances.iter().zip(&survey.instances) {
            rows.add_row(vec![
                label(row).into(),
                graded(&row.landed, instance.status.verdict().0),
                size(row.shared_memory).into(),
                or_unknown(row.pages_needed).into(),
                or_unknown(row.pages_used).into(),
                or_unknown(row.pages_missing).into(),
                size(row.page_tables).into(),
                if row.memlock_unlimited == Some(true) { "unlimited".into() } else { size(row.memlock).into() },
            ]);
        }
        println!("{rows}\n");
        out.instances.iter().zip(&survey.instances).for_each(|(row, instance)| {
            let pieces = instance.memory.iter().flat_map(|memory| memory.by_page_size());
            let pieces: Vec<_> = pieces
                .map(|(page, bytes)| match page {
                    Some(page) => format!("{bytes} in pages of {page}"),
                    None => format!("{bytes} in pages of unknown size"),
                })
                .collect();
            let of_it = out.recommendations.iter().filter(|one| one.instance.as_deref() == Some(&row.name));
            print_details(row, of_it, &pieces.join(", "));
        });
    }
    print_pools(&out.pools);
    // The verdict below has the command for the pool.
    let said = |one: &&RecommendationOut| one.command.as_ref().is_some_and(|command| out.message.contains(command));
    for one in out.recommendations.iter().filter(|one| one.instance.is_none() && !said(one)) {
        println!();
        print_recommendation(one, 0);
    }
    for note in &out.notes {
        println!("{}", wrapped(&format!("note: {note}"), 0, 2));
    }
    println!("\n{}", wrapped(&format!("{}: {}", out.verdict.to_uppercase(), out.message), 0, 2));
}

fn print_details<'a>(row: &InstanceRow, recommendations: impl Iterator<Item = &'a RecommendationOut>, pieces: &str) {
    let seen = if row.evidence.is_empty() { "nothing".to_owned() } else { row.evidence.join(", ") };
    let pieces = if pieces.is_empty() { String::new() } else { format!("{pieces}; ") };
    println!("{}", wrapped(&format!("{}: {pieces}seen in {seen}", label(row)), 0, 2));
    if let Some(why) = &row.not_counted_because {
        println!("{}", wrapped(&format!("not counted: {why}"), 2, 4));
    }
    if row.verdict != "ok" {
        println!("{}", wrapped(&format!("{}: {}", row.verdict, row.message), 2, 4));
        if let Some(hint) = &row.hint {
            println!("{}", wrapped(hint, 2, 4));
        }
    }
    // What the message already speaks of is not said twice.
    for one in recommendations.filter(|one| !one.reason.starts_with(&row.message)) {
        print_recommendation(one, 2);
    }
    for note in &row.notes {
        println!("{}", wrapped(&format!("note: {note}"), 2, 4));
    }
    println!();
}

fn print_recommendation(one: &RecommendationOut, indent: usize) {
    println!("{}", wrapped(&format!("{}: {}: {}", one.severity, one.setting, one.reason), indent, indent + 2));
    if let Some(command) = &one.command {
        println!("{}", wrapped(command, indent, indent + 2));
    }
}

fn print_pools(pools: &[PoolOut]) {
    let mut rows =
        table(&["PAGE SIZE", "NR", "FREE", "RESV", "SURPLUS", "AVAILABLE", "INSTANCES", "OTHERS", "RECOMMENDED"], 0);
    for pool in pools.iter().filter(|pool| pool.node.is_none()) {
        rows.add_row(vec![
            size(Some(pool.page_size)),
            pool.nr_hugepages.to_string(),
            pool.free_hugepages.to_string(),
            or_unknown(pool.resv_hugepages),
            or_unknown(pool.surplus_hugepages),
            or_unknown(pool.available),
            pool.held_by_instances.map_or(String::new(), |pages| pages.to_string()),
            pool.held_by_others.map_or(String::new(), |pages| pages.to_string()),
            pool.recommended_nr_hugepages.map_or(String::new(), |pages| pages.to_string()),
        ]);
    }
    println!("{rows}");
}

/// What tells it from all others: the kind and the name, of a long path its end.
fn label(row: &InstanceRow) -> String {
    const LONGEST: usize = 21;
    let kind = if row.kind == "postgresql" { "pg" } else { &row.kind };
    let name: Vec<char> = row.name.chars().collect();
    let shown: String = match name.len() {
        length if length > LONGEST => {
            std::iter::once('…').chain(name[length - LONGEST + 1..].iter().copied()).collect()
        }
        _ => name.iter().collect(),
    };
    format!("{kind} {shown}")
}
