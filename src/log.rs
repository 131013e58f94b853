//! Writes messages of the core to the server's log.

use std::collections::BTreeSet;
use std::sync::Mutex;

use hugepage_assess::advice::events::LogLevel;
use hugepage_assess::advice::log::LogMessage;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::{memory, settings};

/// The problems that [`problem`] has logged; every process inherits those of the postmaster.
static LOGGED_PROBLEMS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// A process logs no more different problems than this.
const MAX_LOGGED_PROBLEMS: usize = 50;

/// Reports `message` at `level`, which must be below ERROR.
pub fn report(level: PgLogLevel, message: LogMessage) {
    let code = match level {
        PgLogLevel::WARNING => PgSqlErrorCode::ERRCODE_WARNING,
        _ => PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
    };
    let mut report = ErrorReport::new(code, format!("pg_hugepages: {}", message.message), "pg_hugepages");
    if let Some(detail) = message.detail {
        report = report.set_detail(detail);
    }
    if let Some(hint) = message.hint {
        report = report.set_hint(hint);
    }
    report.report(level);
}

/// Reports `message` at PostgreSQL's name of `level`.
pub fn report_as(level: LogLevel, message: LogMessage) {
    let level = match level {
        LogLevel::Log => PgLogLevel::LOG,
        LogLevel::Warning => PgLogLevel::WARNING,
        LogLevel::Regression => settings::regression_level(),
    };
    report(level, message);
}

/// Logs a problem of the extension itself, once in a process.
pub fn problem(text: String) {
    let Ok(mut logged) = LOGGED_PROBLEMS.lock() else { return };
    if logged.len() < MAX_LOGGED_PROBLEMS && logged.insert(text.clone()) {
        drop(logged);
        report(PgLogLevel::LOG, LogMessage { is_bad: false, message: text, detail: None, hint: None });
    }
}

/// Logs the problems again that were logged before the logging collector ran.
pub fn repeat_problems() {
    let logged = LOGGED_PROBLEMS.lock().map(|mut logged| std::mem::take(&mut *logged));
    logged.into_iter().flatten().for_each(problem);
}

/// Runs `work` with a reserve of `bytes`. An error of PostgreSQL or a panic is one line in the log; it goes no further.
pub fn catch_errors(what: &str, bytes: usize, work: impl FnOnce()) {
    let what = std::panic::AssertUnwindSafe(what);
    let work = std::panic::AssertUnwindSafe(work);
    let with_reserve = || memory::with_reserve(bytes, || { work }.0());
    PgTryBuilder::new(with_reserve)
        .catch_others(|error| problem(format!("could not {}: {error:?}", *what)))
        .catch_rust_panic(|error| problem(format!("could not {}: {error:?}", *what)))
        .execute();
}
