//! `benefit`: what huge pages would save each PostgreSQL server, observed for some time. No server is restarted or asked.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use hugepage_assess::model::Landing;
use hugepage_benefit::observation::{Observation, ObservedServer, measure_cost};
use hugepage_benefit::page_fault_runs::FaultCostRuns;
use hugepage_benefit::rows::{BYTES, BenefitRow, CPU, rows, three_digits};
use hugepage_benefit::sampling::sessions;
use hugepage_host::{InspectedHost, Instance, no_past};
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Root};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::commands::survey::AccountOptions;
use crate::exit::{self, Exit};
use crate::output::stream::{complain, say};
use crate::output::table::{or_unknown, table, wrapped};
use crate::output::{Format, escape, json};
use crate::signals::SignalTimer;
use crate::supervisor;

/// The time between two moves of the progress bar.
const STEP: Duration = Duration::from_millis(200);

/// Options of `benefit`.
#[derive(Debug, Args)]
pub struct BenefitOptions {
    /// Observe for this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    interval: Duration,
    #[command(flatten)]
    accounts: AccountOptions,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The output of the command.
#[derive(Debug, Serialize)]
struct BenefitOutput {
    /// The servers that count, one object each.
    instances: Vec<InstanceBenefit>,
    /// The files that could not be read, and why.
    notes: Vec<String>,
}

/// A server with the figures of its benefit.
#[derive(Debug, Serialize)]
struct InstanceBenefit {
    name: String,
    pid: i32,
    figures: Vec<BenefitRow>,
}

fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(interval) if (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&interval) => Ok(interval),
        Ok(_) => Err("the interval must be between 100 ms and 1 h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The exit status is OK if a server was observed: whether a restart is worth it is no problem of the host.
pub fn run(root: &Root, options: &BenefitOptions) -> anyhow::Result<Exit> {
    if !root.is_live() {
        complain!("hugepage-sidecar: benefit observes this host and cannot be combined with --root");
        return Ok(exit::USAGE);
    }
    options.accounts.check(root)?;
    let mut timer = SignalTimer::new().context("could not catch signals")?;
    supervisor::begin_reading(options.interval);
    // How much memory base pages keep makes no difference here.
    let survey = InspectedHost::inspect(root, 0, &options.accounts.service_account, None).assess(&no_past);
    let mut notes = Notes::default();
    survey.notes.iter().for_each(|note| notes.add(note.clone()));
    let observed: Vec<&Instance> =
        survey.instances.iter().filter(|instance| instance.id.postgresql().is_some()).collect();
    if observed.is_empty() {
        complain!("hugepage-sidecar: there is no PostgreSQL server to observe");
        return Ok(exit::UNKNOWN);
    }
    let mut cost = FaultCostRuns::default();
    measure_cost(&mut cost, || {}, &mut notes);
    let begin = |instance: &Instance, notes: &mut Notes| Observation::begin(root, server(instance), || {}, notes);
    let mut begun: Vec<_> = observed.iter().map(|instance| begin(instance, &mut notes)).collect();
    let between = || {
        begun.iter_mut().for_each(|observation| observation.see_newcomers(root, || {}, &mut notes));
        if cost.is_due(options.interval) {
            measure_cost(&mut cost, || {}, &mut notes);
        }
    };
    if wait(&mut timer, options.interval, between)? {
        complain!("hugepage-sidecar: interrupted");
        return Ok(exit::UNKNOWN);
    }
    measure_cost(&mut cost, || {}, &mut notes);
    let cost = cost.cost();
    let instances = observed.iter().zip(begun).map(|(instance, observation)| {
        let benefit = observation.end(root, |sample| sessions(root, sample), || {}, |_| cost, &mut notes);
        InstanceBenefit { name: instance.id.name.clone(), pid: instance.id.pid, figures: rows(&benefit) }
    });
    let instances = instances.collect();
    let out = BenefitOutput { instances, notes: notes.into_vec() };
    match options.format {
        Format::Json => json(&out)?,
        Format::Csv => csv(&out)?,
        Format::Table => print(&out),
    }
    Ok(exit::OK)
}

fn server(instance: &Instance) -> ObservedServer {
    let segment = instance.status.facts.segment.as_ref();
    ObservedServer {
        postmaster: Some(instance.id.pid),
        segment: segment.map_or(Bytes(0), |segment| segment.size),
        landing: segment.map_or(Landing::Unknown, |segment| segment.landing),
        page_size: segment.and_then(|segment| segment.page_size),
        // The files may have changed since the start.
        max_connections: None,
    }
}

/// Waits with a progress bar, which is hidden unless standard error is a terminal; returns whether a signal was received.
fn wait(timer: &mut SignalTimer, interval: Duration, mut between: impl FnMut()) -> anyhow::Result<bool> {
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} ms");
    let length = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let bar = ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    loop {
        let elapsed = bar.elapsed();
        bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let left = interval.saturating_sub(elapsed);
        if left.is_zero() {
            bar.finish_and_clear();
            return Ok(false);
        }
        if timer.wait(left.min(STEP)).context("could not wait")? {
            bar.finish_and_clear();
            return Ok(true);
        }
        between();
    }
}

fn print(out: &BenefitOutput) {
    for instance in &out.instances {
        say!("{}", wrapped(&format!("pg {}", instance.name), 0, 2));
        let mut figures = table(&["FIGURE", "BASE", "2 MB", "1 GB", "CONFIDENCE"], 0);
        for row in instance.figures.iter().filter(|row| row.unit.is_some()) {
            let cell =
                |value: Option<f64>| or_unknown(value.map(|value| with_unit(value, row.unit.unwrap_or_default())));
            figures.add_row(vec![
                row.figure.to_owned(),
                cell(row.base),
                cell(row.huge_2mb),
                cell(row.huge_1gb),
                confidence(row),
            ]);
        }
        if instance.figures.len() > 1 {
            say!("{}\n", figures.trim_fmt());
        }
        let summary = instance.figures.iter().find(|row| row.unit.is_none());
        summary.iter().for_each(|row| say!("{}\n", wrapped(&row.detail, 0, 2)));
    }
    for note in &out.notes {
        say!("{}", wrapped(&format!("note: {note}"), 0, 2));
    }
}

/// A value with a unit that is short enough for a terminal of 80 columns.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        BYTES => Bytes(value.max(0.0) as u64).to_string(),
        CPU => format!("{} %", three_digits(value * 100.0)),
        _ => format!("{} ms", three_digits(value * 1000.0)),
    }
}

fn confidence(row: &BenefitRow) -> String {
    let value = serde_json::to_value(row.confidence).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Prints CSV, one line per figure.
fn csv(out: &BenefitOutput) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(crate::output::stream::stdout());
    writer.write_record(["instance", "figure", "unit", "base", "huge_2mb", "huge_1gb", "confidence", "detail"])?;
    for instance in &out.instances {
        for row in &instance.figures {
            let value = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            writer.write_record([
                &*escape::line(&instance.name),
                row.figure,
                row.unit.unwrap_or_default(),
                &value(row.base),
                &value(row.huge_2mb),
                &value(row.huge_1gb),
                &confidence(row),
                &row.detail,
            ])?;
        }
    }
    writer.flush()?;
    Ok(())
}
