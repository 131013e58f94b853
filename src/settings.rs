//! All settings of the extension.

use std::time::Duration;

use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

static LOG_STARTUP: GucSetting<bool> = GucSetting::<bool>::new(true);
static SAMPLE_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(60);
static HISTORY_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1000);
static REGRESSION_LEVEL: GucSetting<Level> = GucSetting::<Level>::new(Level::Warning);
static RESERVE_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(20);

/// The log levels that end no transaction and no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
enum Level {
    #[name = c"debug"]
    Debug,
    #[name = c"info"]
    Info,
    #[name = c"notice"]
    Notice,
    #[name = c"warning"]
    Warning,
    #[name = c"log"]
    Log,
}

/// `pg_hugepages.log_startup`: whether a start at which all is as asked is logged too.
pub fn log_startup() -> bool {
    LOG_STARTUP.get()
}

/// `pg_hugepages.sample_interval`: how often the worker looks; `None` if it is switched off.
pub fn sample_interval() -> Option<Duration> {
    Some(SAMPLE_INTERVAL.get())
        .filter(|&seconds| seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.unsigned_abs().into()))
}

/// `pg_hugepages.history_size`: how many records are kept; 0 switches the history off.
pub fn history_size() -> usize {
    usize::try_from(HISTORY_SIZE.get()).unwrap_or(0)
}

/// `pg_hugepages.regression_level`: the level at which a loss against the start before is logged.
pub fn regression_level() -> PgLogLevel {
    match REGRESSION_LEVEL.get() {
        Level::Debug => PgLogLevel::DEBUG1,
        Level::Info => PgLogLevel::INFO,
        Level::Notice => PgLogLevel::NOTICE,
        Level::Warning => PgLogLevel::WARNING,
        Level::Log => PgLogLevel::LOG,
    }
}

/// `pg_hugepages.reserve_percent`: the hundredths of memory that are to stay for base pages.
pub fn reserve_percent() -> u32 {
    RESERVE_PERCENT.get().unsigned_abs()
}

/// The values that a reload can change, by name, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reloadable([(&'static str, String); 5]);

impl Reloadable {
    /// What is another value than in `before`, one phrase each.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let pairs = before.0.iter().zip(&self.0);
        let changed = pairs.filter(|(was, is)| was != is);
        changed.map(|((name, was), (_, is))| format!("pg_hugepages.{name} from {was} to {is}")).collect()
    }
}

/// The values as they are.
pub fn reloadable() -> Reloadable {
    Reloadable([
        ("log_startup", if log_startup() { "on" } else { "off" }.to_owned()),
        ("sample_interval", SAMPLE_INTERVAL.get().to_string()),
        ("history_size", HISTORY_SIZE.get().to_string()),
        ("regression_level", format!("{:?}", REGRESSION_LEVEL.get()).to_lowercase()),
        ("reserve_percent", reserve_percent().to_string()),
    ])
}

/// Makes the settings known to the server.
pub fn define() {
    GucRegistry::define_bool_guc(
        c"pg_hugepages.log_startup",
        c"Logs where shared memory landed at every start, also when all is as asked.",
        c"What is not as asked is logged in any case.",
        &LOG_STARTUP,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.sample_interval",
        c"Sets how often the worker looks whether a restart would keep huge pages.",
        c"Zero switches it off.",
        &SAMPLE_INTERVAL,
        0,
        86_400,
        GucContext::Sighup,
        GucFlags::UNIT_S,
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.history_size",
        c"Sets how many records the history keeps.",
        c"Zero switches it off.",
        &HISTORY_SIZE,
        0,
        100_000,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"pg_hugepages.regression_level",
        c"Sets the level at which a loss against the start before is logged.",
        c"",
        &REGRESSION_LEVEL,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_hugepages.reserve_percent",
        c"Percentage of memory that the host keeps for base pages.",
        c"A recommendation that leaves less comes with a caution.",
        &RESERVE_PERCENT,
        0,
        90,
        GucContext::Suset,
        GucFlags::default(),
    );
    reserve_prefix();
}

/// So that a mistyped `pg_hugepages.` setting is reported; last, because it refuses all that come after.
fn reserve_prefix() {
    // SAFETY: called in _PG_init, with a constant string.
    #[allow(unsafe_code)]
    unsafe {
        pgrx::pg_sys::MarkGUCPrefixReserved(c"pg_hugepages".as_ptr());
    }
}
