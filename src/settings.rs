//! The settings of the extension (GUCs).

use std::time::Duration;

use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

/// The reason why the server's program is not asked.
pub const IS_OFF: &str =
    "the server's program is not asked, because pg_hugepages.ask_server_program is off";
static SAMPLE_INTERVAL: GucSetting<i32> = GucSetting::<i32>::new(60);
static HISTORY_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1000);
static ASK_SERVER_PROGRAM: GucSetting<bool> = GucSetting::<bool>::new(true);
static RESERVE_PERCENT: GucSetting<i32> = GucSetting::<i32>::new(20);

/// `pg_hugepages.sample_interval`: the time between two samples of the worker; `None` if they are off.
pub fn sample_interval() -> Option<Duration> {
    let seconds = SAMPLE_INTERVAL.get().unsigned_abs();
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// `pg_hugepages.history_size`: the number of records that are kept; 0 turns the history off.
pub fn history_size() -> usize {
    usize::try_from(HISTORY_SIZE.get()).unwrap_or(0)
}

/// `pg_hugepages.reserve_percent`: the hundredths of memory that are to stay for base pages.
pub fn reserve_percent() -> u32 {
    RESERVE_PERCENT.get().unsigned_abs()
}

/// `pg_hugepages.ask_server_program`: whether the server's program may be run.
pub fn ask_server_program() -> bool {
    ASK_SERVER_PROGRAM.get()
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
    // The server reports a mistyped setting. Last, for none can be defined after it. SAFETY: in _PG_init, with a constant string.
    #[allow(unsafe_code)]
    unsafe {
        pgrx::pg_sys::MarkGUCPrefixReserved(c"pg_hugepages".as_ptr());
    }
}
