//! From the core's messages to the server's log.

use std::collections::BTreeSet;
use std::sync::Mutex;

use hugepage_core::advise::events::LogLevel;
use hugepage_core::advise::log::LogMessage;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::settings;

/// What [`trouble`] has said; inherited from the postmaster by every process of the server.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// More different troubles than this are no news any more.
const MOST_TROUBLES: usize = 50;

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

/// Says in the log what went wrong with the extension itself; each but once in this process.
pub fn trouble(text: String) {
    let Ok(mut said) = SAID.lock() else { return };
    if said.len() < MOST_TROUBLES && said.insert(text.clone()) {
        drop(said);
        report(PgLogLevel::LOG, LogMessage { is_bad: false, message: text, detail: None, hint: None });
    }
}

/// Says again what was said where the logging collector did not hear it.
pub fn repeat_troubles() {
    let said = SAID.lock().map(|mut said| std::mem::take(&mut *said));
    said.into_iter().flatten().for_each(trouble);
}

/// Runs `work`; whatever it raises, an error of PostgreSQL or a panic, is one line in the log and never more.
pub fn shielded(what: &str, work: impl FnOnce()) {
    let what = std::panic::AssertUnwindSafe(what);
    let work = std::panic::AssertUnwindSafe(work);
    PgTryBuilder::new(|| { work }.0())
        .catch_others(|error| trouble(format!("could not {}: {error:?}", *what)))
        .catch_rust_panic(|error| trouble(format!("could not {}: {error:?}", *what)))
        .execute();
}
