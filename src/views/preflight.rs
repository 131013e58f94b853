//! `hugepage_preflight(...)`: what the next start would get, by the server's program.

// pg_extern repeats the function's result type in a closure.
#![allow(clippy::result_large_err)]

use hugepage_assess::advice;
use hugepage_assess::advice::message::pending::UNCHECKED_RINGS;
use hugepage_assess::assessment::page_tables::tables;
use hugepage_assess::assessment::{Finding, Forecast, Outlook, Status};
use hugepage_assess::columns::NamedValue;
use hugepage_assess::model::Pending;
use hugepage_assess::row;
use hugepage_kernel::{Notes, PageSize, Root};
use hugepage_start::TwoStarts;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::{ErrorReport, ErrorReportable};
use pgrx::prelude::*;

use super::datum::ascii;
use super::rows;
use crate::answer::{Answer, Asked, Overrides};
use crate::asker::arguments::{self, InvalidArgument};
use crate::{asker, assessment, next_start, standby};

#[pg_extern(sql = false)]
fn hugepage_preflight(
    call: pg_sys::FunctionCallInfo,
    shared_buffers: Option<&[u8]>,
    max_connections: Option<i32>,
    huge_page_size: Option<&[u8]>,
) {
    rows::return_rows(call, rows::declared!("preflight.sql"), |notes| {
        let [shared_buffers, huge_page_size] = [shared_buffers, huge_page_size].map(|text| text.map(ascii));
        let overrides = arguments::overrides(shared_buffers, max_connections, huge_page_size);
        let start = NextStart::with(overrides.map_err(refuse).unwrap_or_report(), notes);
        Some(start.row())
    })
}

/// The forecast of a start.
struct NextStart {
    status: Status,
    forecast: Forecast,
    /// The reason why the server's program gave no answer; `None` if it did.
    unknown: Option<String>,
}

impl NextStart {
    fn with(overrides: Overrides, notes: &mut Notes) -> Self {
        let root = Root::live();
        let Asked { answer, recovery } = asker::ask(overrides);
        let refusal = standby::primary().zip(recovery).and_then(|(primary, own)| own.refusal(&primary));
        let answer = match (answer, refusal) {
            (Answer::Refuses(error), _) => Answer::Refuses(next_start::shown(error)),
            (_, Some(error)) => Answer::Refuses(error),
            (answer, None) => answer,
        };
        let unknown = match &answer {
            Answer::Unknown(why) => Some(why.clone()),
            Answer::Starts(TwoStarts { without: Some(without), .. }) => Some(without.note.clone()),
            Answer::Starts(_) | Answer::Refuses(_) => None,
        };
        let status = assessment::with_answer(&root, Some(answer), false, notes);
        let facts = &status.facts;
        let forecast = facts.pending.forecast(facts.pool_state.huge_page_size, status.own);
        let forecast = facts.beside_old_rings(forecast.unwrap_or(Forecast::unknown()));
        Self { status, forecast, unknown }
    }

    fn row(&self) -> [NamedValue; 12] {
        let forecast = &self.forecast;
        let (demand, pool_state) = match &self.status.facts.pending {
            Pending::Changed(demand, pool_state) => (Some(demand), Some(pool_state)),
            _ => (None, None),
        };
        let refused = match &self.status.facts.pending {
            Pending::Refused(text) => Some(text.clone()),
            _ => None,
        };
        let will_start = match demand {
            Some(demand) => forecast.will_start(&demand.requested),
            None => refused.as_ref().map(|_| false),
        };
        let fails =
            demand.zip(pool_state).filter(|_| forecast.outlook == Outlook::Fails).map(|(demand, pool_state)| {
                hugepage_assess::advice::message::pending::refusal(pool_state, demand.requested.sysv)
                    .unwrap_or(crate::majors::NO_HUGE_PAGES_IN_SYSV)
                    .to_owned()
            });
        let tables_with = |page: Option<PageSize>| {
            demand.and_then(|demand| Some(tables(demand.max_connections, demand.shared_memory, page?)))
        };
        let unknown = || self.unknown.clone().filter(|_| self.status.facts.pending == Pending::Unknown);
        let of_rings = will_start.is_none() && demand.is_some_and(|demand| demand.requested.io_uring);
        let unchecked = || of_rings.then(|| UNCHECKED_RINGS.to_owned());
        let page_size = match forecast.outlook {
            Outlook::Hugetlb => forecast.huge_page_size,
            Outlook::Base => Some(PageSize::base()),
            Outlook::Mixed | Outlook::Fails | Outlook::Unknown => None,
        };
        row! {
            will_start: will_start,
            lands_in: Some(forecast.outlook).filter(|outlook| *outlook != Outlook::Fails),
            page_size: page_size,
            shared_memory: demand.map(|demand| demand.shared_memory),
            pages_needed: forecast.needed,
            pages_guaranteed: forecast.guaranteed,
            pages_missing: forecast.missing,
            cause: forecast.cause,
            detail: refused.or(fails).or_else(unknown).or_else(unchecked),
            hint: self.hint(),
            page_tables_base: tables_with(Some(PageSize::base())),
            page_tables_huge: tables_with(forecast.huge_page_size),
        }
    }

    /// How the start would get huge pages; `None` if it gets them, or if nothing that is known here helps.
    fn hint(&self) -> Option<String> {
        let is_of_start = |finding: &&(_, Finding)| {
            matches!(
                finding.1,
                Finding::RestartFails | Finding::RestartLoses | Finding::OutlookUnknown | Finding::BasePages(_)
            )
        };
        let finding =
            self.status.findings.iter().find(is_of_start).filter(|_| self.forecast.outlook != Outlook::Hugetlb);
        advice::message::hint_of_finding(&self.status, &finding?.1)
    }
}

fn refuse(invalid: InvalidArgument) -> ErrorReport {
    let InvalidArgument { argument, value, allowed } = invalid;
    let message = format!("invalid value for argument \"{argument}\": \"{value}\"");
    ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, function_name!()).set_detail(allowed)
}
