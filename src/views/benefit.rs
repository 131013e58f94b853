//! `hugepage_benefit(duration)`: what huge pages would save this server, observed for some time.
//!
//! A function and not a view, because it waits.

// pg_extern repeats the function's result type in a closure.
#![allow(clippy::result_large_err)]

use std::borrow::Cow;
use std::time::Duration;

use hugepage_assess::model::Landing;
use hugepage_benefit::model::FaultSample;
use hugepage_benefit::observation::{NEWCOMER_INTERVAL, Observation, ObservedServer, measure_cost};
use hugepage_benefit::page_fault_runs::FaultCostRuns;
use hugepage_benefit::rows::{BenefitRow, rows};
use hugepage_kernel::memory::meminfo::Meminfo;
use hugepage_kernel::notes::Notes;
use hugepage_kernel::{Bytes, Root};
use hugepage_server::server::{landing, thp_in_use};
use pgrx::datum::Interval;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{ErrorReport, ErrorReportable};
use pgrx::prelude::*;

use super::convert::text;
use super::rows;
use crate::latch::{self, LatchGuard};
use crate::{processes, server, sessions};

const MIN_MICROSECONDS: i128 = 100_000;
/// The longest observation; the query holds a snapshot for as long.
const MAX_MICROSECONDS: i128 = 60_000_000;

#[pg_extern(sql = false)]
fn hugepage_benefit(call: pg_sys::FunctionCallInfo, duration: Interval) {
    rows::return_rows(call, |notes| {
        let interval = time(&duration).unwrap_or_report();
        let found = observe(&Root::live(), interval, notes);
        found.into_iter().map(|row| {
            (
                row.figure.to_owned(),
                row.unit.map(str::to_owned),
                row.base,
                row.huge_2mb,
                row.huge_1gb,
                row.confidence.to_string(),
                text(row.detail),
            )
        })
    })
}

/// Waits for `interval` between two passes over the processes of this server. A cancel ends it.
fn observe(root: &Root, interval: Duration, notes: &mut Notes) -> Vec<BenefitRow> {
    let mapping = server::main_mapping(root, notes);
    let meminfo = notes.keep(Meminfo::read(root));
    let landed = mapping.as_ref().and_then(|mapping| notes.keep(landing(root, mapping, thp_in_use(meminfo.as_ref()))));
    let postmaster = processes::own_namespace(root, notes).then(server::postmaster_pid);
    let server = ObservedServer {
        postmaster,
        segment: mapping.as_ref().map_or(Bytes(0), |mapping| mapping.size()),
        landing: landed.unwrap_or(Landing::Unknown),
        page_size: mapping.and_then(|mapping| mapping.page_size),
        max_connections: Some(server::max_connections()),
    };
    let mut cost = FaultCostRuns::default();
    measure_cost(&mut cost, check_for_cancel, notes);
    let mut observation = Observation::begin(root, server, check_for_cancel, notes);
    let latch = LatchGuard;
    while postmaster.is_some() && observation.left(interval) > Duration::ZERO {
        latch::wait(&latch, c"HugepagesBenefit", None, observation.left(interval).min(NEWCOMER_INTERVAL));
        observation.see_newcomers(root, check_for_cancel, notes);
        if cost.is_due(interval) {
            measure_cost(&mut cost, check_for_cancel, notes);
        }
    }
    let cost = |notes: &mut Notes| {
        measure_cost(&mut cost, check_for_cancel, notes);
        cost.cost()
    };
    rows(&observation.end(root, client_backends, check_for_cancel, cost, notes))
}

fn client_backends(_: &FaultSample) -> Vec<i32> {
    let serves_client = |kind: &Option<Cow<'_, str>>| kind.as_deref() == Some("client backend");
    sessions::now_running().iter().filter(|session| serves_client(&session.backend_type)).map(|one| one.pid).collect()
}

fn time(duration: &Interval) -> Result<Duration, ErrorReport> {
    let microseconds = duration.as_micros();
    match u64::try_from(microseconds) {
        Ok(value) if (MIN_MICROSECONDS..=MAX_MICROSECONDS).contains(&microseconds) => Ok(Duration::from_micros(value)),
        _ => {
            let message = "invalid value for argument \"duration\"";
            let report = ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, function_name!());
            let report = report.set_detail("It must be between 100 ms and 1 min.");
            Err(report.set_hint("\"hugepage-sidecar benefit\" observes for up to 1 h."))
        }
    }
}

/// Ends the query if it was cancelled or has timed out.
fn check_for_cancel() {
    pgrx::check_for_interrupts!();
}
