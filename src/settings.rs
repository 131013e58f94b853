//! The settings of the extension (GUCs).

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

static LOG_STARTUP: GucSetting<bool> = GucSetting::<bool>::new(true);
static SAMPLE_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(60);
static HISTORY_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1000);
static HISTORY_DIRECTORY: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);
static REGRESSION_LEVEL: GucSetting<RegressionLevel> = GucSetting::<RegressionLevel>::new(RegressionLevel::Warning);
static ASK_SERVER_PROGRAM: GucSetting<bool> = GucSetting::<bool>::new(true);
static RESERVE_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(20);

/// The log levels below ERROR that reach the log with the default `log_min_messages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
enum RegressionLevel {
    #[name = c"warning"]
    Warning,
    #[name = c"log"]
    Log,
}

/// `pg_hugepages.log_startup`: whether a start that got the pages it asked for is logged too.
pub fn log_startup() -> bool {
    LOG_STARTUP.get()
}

/// `pg_hugepages.sample_interval`: the time between two samples of the worker; `None` if they are off.
pub fn sample_interval() -> Option<Duration> {
    Some(SAMPLE_INTERVAL.get())
        .filter(|&seconds| seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.unsigned_abs().into()))
}

/// `pg_hugepages.history_size`: the number of records that are kept; 0 turns the history off.
pub fn history_size() -> usize {
    usize::try_from(HISTORY_SIZE.get()).unwrap_or(0)
}

/// `pg_hugepages.history_directory`: the directory of the history file, which may be relative to the data directory; `None` is
/// the data directory.
pub fn history_directory() -> Option<PathBuf> {
    let path = HISTORY_DIRECTORY.get().filter(|path| !path.is_empty())?;
    Some(OsString::from_vec(path.into_bytes()).into())
}

/// `pg_hugepages.regression_level`: the log level of a regression.
pub fn regression_level() -> PgLogLevel {
    match REGRESSION_LEVEL.get() {
        RegressionLevel::Warning => PgLogLevel::WARNING,
        RegressionLevel::Log => PgLogLevel::LOG,
    }
}

/// `pg_hugepages.reserve_percent`: the hundredths of memory that are to stay for base pages.
pub fn reserve_percent() -> u32 {
    RESERVE_PERCENT.get().unsigned_abs()
}

/// `pg_hugepages.ask_server_program`: whether the server's program may be run.
pub fn ask_server_program() -> bool {
    ASK_SERVER_PROGRAM.get()
}

/// The values of the settings that a reload can change, by name, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValues([(&'static str, String); 7]);

impl SettingValues {
    /// The settings that have another value than in `before`, one phrase each.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let pairs = before.0.iter().zip(&self.0);
        let changed = pairs.filter(|(was, is)| was != is);
        changed.map(|((name, was), (_, is))| format!("pg_hugepages.{name} from {was} to {is}")).collect()
    }
}

/// The values now.
pub fn reloadable() -> SettingValues {
    let on_or_off = |value: bool| if value { "on" } else { "off" }.to_owned();
    SettingValues([
        ("ask_server_program", on_or_off(ask_server_program())),
        ("log_startup", on_or_off(log_startup())),
        ("sample_interval", SAMPLE_INTERVAL.get().to_string()),
        ("history_size", HISTORY_SIZE.get().to_string()),
        ("history_directory", format!("\"{}\"", history_directory().unwrap_or_default().display())),
        ("regression_level", format!("{:?}", REGRESSION_LEVEL.get()).to_lowercase()),
        ("reserve_percent", reserve_percent().to_string()),
    ])
}

/// Registers the settings with the server.
pub fn define() {
    GucRegistry::define_bool_guc(
        c"pg_hugepages.ask_server_program",
        c"Runs the server's program to determine what a start with a changed configuration needs.",
        c"If off, nobody runs it, and what only it knows is unknown.",
        &ASK_SERVER_PROGRAM,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pg_hugepages.log_startup",
        c"Logs at every start which pages shared memory landed in.",
        c"A start without the pages that were asked for is always logged.",
        &LOG_STARTUP,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.sample_interval",
        c"Sets the interval at which the worker checks whether a restart would keep huge pages.",
        c"Zero turns it off.",
        &SAMPLE_INTERVAL,
        0,
        86_400,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.history_size",
        c"Sets the number of records in the history.",
        c"Zero turns it off.",
        &HISTORY_SIZE,
        0,
        100_000,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"pg_hugepages.history_directory",
        c"Sets the directory of the history.",
        c"It may be relative to the data directory, which is the default.",
        &HISTORY_DIRECTORY,
        GucContext::Sighup,
        GucFlags::SUPERUSER_ONLY,
    );
    GucRegistry::define_enum_guc(
        c"pg_hugepages.regression_level",
        c"Sets the log level of a regression since the previous record.",
        c"",
        &REGRESSION_LEVEL,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.reserve_percent",
        c"Sets the percentage of memory that is to stay for base pages.",
        c"A recommendation that leaves less comes with a caution.",
        &RESERVE_PERCENT,
        0,
        90,
        GucContext::Suset,
        GucFlags::default(),
    );
    reserve_prefix();
}

/// Makes the server report a mistyped `pg_hugepages.` setting. Called last: no setting can be defined after it.
fn reserve_prefix() {
    // SAFETY: called in _PG_init, with a constant string.
    #[allow(unsafe_code)]
    unsafe {
        pgrx::pg_sys::MarkGUCPrefixReserved(c"pg_hugepages".as_ptr());
    }
}
