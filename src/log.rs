//! From the core's messages to the server's log.

use std::sync::Mutex;

use hugepage_core::advise::log::Message;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

/// Reports `message` at `level`, which must be below ERROR.
pub fn report(level: PgLogLevel, message: Message) {
    let mut report = ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("pg_hugepages: {}", message.message),
        "pg_hugepages",
    );
    if let Some(detail) = message.detail {
        report = report.set_detail(detail);
    }
    if let Some(hint) = message.hint {
        report = report.set_hint(hint);
    }
    report.report(level);
}

/// Says in the log what went wrong with the extension itself; not again in this process until it is something else.
pub fn trouble(text: String) {
    static SAID: Mutex<Option<String>> = Mutex::new(None);
    let Ok(mut said) = SAID.lock() else { return };
    if said.as_ref() != Some(&text) {
        report(PgLogLevel::LOG, Message { is_bad: false, message: text.clone(), detail: None, hint: None });
        *said = Some(text);
    }
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
