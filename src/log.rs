//! Writes messages of the core to the server's log.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;

use hugepage_assess::advice::events::LogMessage;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;

use crate::memory;

/// What stops operations, with their names.
struct Problem {
    message: LogMessage,
    operations: Vec<&'static str>,
}

/// The problems that last; every process inherits those of the postmaster.
static PROBLEMS: Mutex<Vec<Problem>> = Mutex::new(Vec::new());
/// A process logs no more problems than this that last at the same time.
const MAX_PROBLEMS: usize = 50;

/// Reports `message` at `level`, which must be below ERROR.
pub fn report(level: PgLogLevel, message: LogMessage) {
    let code = match level {
        PgLogLevel::WARNING => PgSqlErrorCode::ERRCODE_WARNING,
        _ => PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
    };
    let mut report = ErrorReport::new(
        code,
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

/// Reports `message` at its own level.
pub fn write(message: LogMessage) {
    report(
        if message.is_bad {
            PgLogLevel::WARNING
        } else {
            PgLogLevel::LOG
        },
        message,
    );
}

/// Logs one line.
pub fn line(text: String) {
    report(PgLogLevel::LOG, plain(text));
}

/// The value. An error is a problem of `operation`: it is logged when it begins, and again after a success between.
pub fn ok_or_log<T>(operation: &'static str, result: Result<T, impl Display>) -> Option<T> {
    match result {
        Ok(value) => {
            solved(operation);
            Some(value)
        }
        Err(error) => {
            problem(operation, plain(error.to_string()));
            None
        }
    }
}

/// Runs `work` with a reserve of `bytes`. An error of PostgreSQL or a panic is a problem of `operation`, and goes no further.
pub fn catch_errors(operation: &'static str, bytes: usize, work: impl FnOnce()) {
    let work = AssertUnwindSafe(work);
    let with_reserve = || {
        memory::with_reserve(bytes, || { work }.0());
        None
    };
    let error = PgTryBuilder::new(with_reserve)
        .catch_others(|error| Some(caught(operation, &error)))
        .catch_rust_panic(|error| Some(caught(operation, &error)))
        .execute();
    match error {
        Some(message) => problem(operation, message),
        None => solved(operation),
    }
}

/// Forgets all problems, so that each is logged again; in the postmaster, at each allocation of shared memory.
pub fn forget_problems() {
    if let Ok(mut problems) = PROBLEMS.lock() {
        problems.clear();
    }
}

/// Logs the problems again that were logged before the logging collector ran.
pub fn repeat_problems() {
    let problems = PROBLEMS.lock();
    let problems = problems.map(|problems| {
        problems
            .iter()
            .map(|one| one.message.clone())
            .collect::<Vec<_>>()
    });
    problems
        .into_iter()
        .flatten()
        .for_each(|message| report(PgLogLevel::LOG, message));
}

fn problem(operation: &'static str, message: LogMessage) {
    let Ok(mut problems) = PROBLEMS.lock() else {
        return;
    };
    if let Some(known) = problems
        .iter_mut()
        .find(|problem| problem.message == message)
    {
        if !known.operations.contains(&operation) {
            known.operations.push(operation);
        }
    } else if problems.len() < MAX_PROBLEMS {
        problems.push(Problem {
            message: message.clone(),
            operations: vec![operation],
        });
        drop(problems);
        report(PgLogLevel::LOG, message);
    }
}

fn solved(operation: &str) {
    if let Ok(mut problems) = PROBLEMS.lock() {
        problems.retain(|problem| !problem.operations.contains(&operation));
    }
}

/// An error with its DETAIL and HINT, as the server would log it.
fn caught(operation: &str, error: &CaughtError) -> LogMessage {
    let (CaughtError::PostgresError(error)
    | CaughtError::ErrorReport(error)
    | CaughtError::RustPanic { ereport: error, .. }) = error;
    LogMessage {
        detail: error.detail().map(str::to_owned),
        hint: error.hint().map(str::to_owned),
        ..plain(format!("could not {operation}: {}", error.message()))
    }
}

/// A message that reports no problem.
pub const fn plain(message: String) -> LogMessage {
    LogMessage {
        is_bad: false,
        message,
        detail: None,
        hint: None,
    }
}
