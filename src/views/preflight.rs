//! `hugepage_preflight(...)`: what the next start would get, by the server's program. Its arguments are numbers within the server's
//! own bounds.

// pg_extern repeats the function's result type in a closure.
#![allow(clippy::result_large_err)]

use hugepage_assess::advice::message::pending::refusal;
use hugepage_assess::advice::message::{OF_RINGS, hint_of_finding, obstacle};
use hugepage_assess::assessment::page_tables::tables;
use hugepage_assess::assessment::{Finding, Forecast, Outlook, Status};
use hugepage_assess::columns::{self, NamedValue};
use hugepage_assess::model::Pending;
use hugepage_assess::row_of;
use hugepage_kernel::memory::pool;
use hugepage_kernel::{Notes, PageSize, ROOT};
use hugepage_start::TwoStarts;
use pgrx::pg_sys::panic::{ErrorReport, ErrorReportable};
use pgrx::prelude::*;

use super::rows;
use crate::asker::Overrides;
use crate::found::{Answer, Asked};
use crate::library::ascii;
use crate::majors::NO_HUGE_PAGES_IN_SYSV;
use crate::{asker, assessment, guc, next_start, server, standby};

/// What a start may fail for although its configuration is valid.
const NOT_CHECKED: &str = "not checked: data_directory, log_directory, pg_hba.conf, certificates, addresses, ports and socket directories";

#[pg_extern(sql = false)]
fn hugepage_preflight(
    call: pg_sys::FunctionCallInfo,
    shared_buffers: Option<&[u8]>,
    max_connections: Option<i32>,
    huge_page_size: Option<&[u8]>,
) {
    rows::return_rows(call, columns::PREFLIGHT, |notes| {
        // Sizes are as in postgresql.conf; without an argument the value on disk counts.
        let overrides = Overrides {
            shared_buffers: shared_buffers.map(|text| blocks(ascii(text)).unwrap_or_report()),
            max_connections: max_connections.map(|count| connections(count).unwrap_or_report()),
            huge_page_size: huge_page_size.map(|text| page_size(ascii(text)).unwrap_or_report()),
        };
        let Asked { answer, recovery } = asker::ask(overrides);
        let answer = next_start::checked(Some(answer), recovery, standby::primary().as_ref());
        let refusal = server::refusal_of_data_directory();
        let answer = refusal.map(Answer::Refuses).or(answer);
        Some(row(answer, notes))
    })
}

/// The number of blocks of `text`, within the bounds of `shared_buffers` (guc_tables.c).
fn blocks(text: String) -> Result<i32, ErrorReport> {
    const MIN_BLOCKS: i32 = 16;
    const MAX_BLOCKS: i32 = i32::MAX / 2;
    let blocks = guc::integer(&text, pg_sys::GUC_UNIT_BLOCKS);
    blocks.filter(|blocks| (MIN_BLOCKS..=MAX_BLOCKS).contains(blocks)).ok_or_else(|| {
        let size = pg_sys::BLCKSZ;
        let allowed =
            format!("a size such as 8GB, or a number of blocks of {size} bytes, from {MIN_BLOCKS} to {MAX_BLOCKS}.");
        invalid("shared_buffers", &text, format!("It must be {allowed}"))
    })
}

/// Checks that `count` is within the bounds of `max_connections` (guc_tables.c, `MAX_BACKENDS`).
fn connections(count: i32) -> Result<i32, ErrorReport> {
    const MAX_BACKENDS: i32 = 0x3FFFF;
    if (1..=MAX_BACKENDS).contains(&count) {
        return Ok(count);
    }
    let allowed = format!("It must be a number from 1 to {MAX_BACKENDS}.");
    Err(invalid("max_connections", &count.to_string(), allowed))
}

/// A huge page size of this machine.
fn page_size(text: String) -> Result<PageSize, ErrorReport> {
    let sizes = pool::sizes(&ROOT).unwrap_or_default();
    let kilobytes =
        guc::integer(&text, pg_sys::GUC_UNIT_KB).and_then(|number| u64::try_from(number).ok());
    let wanted = kilobytes.and_then(PageSize::from_kib);
    wanted.filter(|size| sizes.contains(size)).ok_or_else(|| {
        let sizes: Vec<_> = sizes.iter().map(|size| size.setting()).collect();
        let allowed = match sizes.as_slice() {
            [] => "This machine has no huge pages.".to_owned(),
            _ => format!("This machine has huge pages of {}.", sizes.join(", ")),
        };
        invalid("huge_page_size", &text, allowed)
    })
}

/// The error for an argument that is out of bounds; `allowed` is a sentence for DETAIL.
fn invalid(argument: &str, value: &str, allowed: String) -> ErrorReport {
    let message = format!("invalid value for argument \"{argument}\": \"{value}\"");
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        function_name!(),
    )
    .set_detail(allowed)
}

/// What the start gets of which the server's program says `answer`.
fn row(answer: Option<Answer>, notes: &mut Notes) -> [NamedValue; 12] {
    // Why there is no answer, if there is none.
    let unknown = match &answer {
        Some(Answer::Unknown(why)) => Some(why.clone()),
        Some(Answer::Starts(TwoStarts {
            without: Some((_, note)),
            ..
        })) => Some(note.clone()),
        _ => None,
    };
    let status = assessment::assess(answer, None, notes);
    let facts = &status.facts;
    let forecast = &status.forecast;
    let (demand, will_start, detail) = match &facts.pending {
        Pending::Changed(demand, pool_state) => {
            let will_start = forecast.will_start(&demand.requested);
            let refusal =
                || refusal(pool_state, demand.requested.sysv).unwrap_or(NO_HUGE_PAGES_IN_SYSV);
            let detail = match (will_start, &forecast.danger) {
                (_, Some(danger)) => Some(obstacle(danger)),
                _ if forecast.outlook == Outlook::Fails => Some(refusal().to_owned()),
                (None, _) if demand.requested.io_uring => Some(OF_RINGS.to_owned()),
                (Some(true), None) => Some(NOT_CHECKED.to_owned()),
                _ => None,
            };
            (Some(demand), will_start, detail)
        }
        Pending::Refused(error) => (None, Some(false), Some(error.clone())),
        Pending::Unknown => (None, None, unknown),
        Pending::Unchanged => (None, None, None),
    };
    let tables_with = |page: Option<PageSize>| {
        demand.and_then(|demand| Some(tables(demand.max_connections, demand.shared_memory, page?)))
    };
    let page_size = match forecast.outlook {
        Outlook::Hugetlb => forecast.huge_page_size,
        Outlook::Base => Some(PageSize::base()),
        Outlook::Mixed | Outlook::Fails | Outlook::Unknown => None,
    };
    row_of! { PREFLIGHT;
        will_start: will_start,
        lands_in: Some(forecast.outlook).filter(|outlook| *outlook != Outlook::Fails),
        page_size: page_size,
        shared_memory: demand.map(|demand| demand.shared_memory),
        pages_needed: forecast.needed,
        pages_guaranteed: forecast.guaranteed,
        pages_missing: forecast.missing,
        cause: forecast.cause,
        detail: detail,
        hint: hint(&status, forecast),
        page_tables_base: tables_with(Some(PageSize::base())),
        page_tables_huge: tables_with(forecast.huge_page_size),
    }
}

/// How the start would get huge pages; `None` if it gets them, or if nothing that is known here helps.
fn hint(status: &Status, forecast: &Forecast) -> Option<String> {
    use Finding::{BasePages, CgroupBelowSegment, OutlookUnknown, RestartFails, RestartLoses};
    let is_of_start = |found: &&(_, Finding)| {
        matches!(
            found.1,
            CgroupBelowSegment | RestartFails | RestartLoses | OutlookUnknown | BasePages(_)
        )
    };
    let finding = status
        .findings
        .iter()
        .find(is_of_start)
        .filter(|_| forecast.outlook != Outlook::Hugetlb || forecast.danger.is_some());
    hint_of_finding(status, &finding?.1)
}
