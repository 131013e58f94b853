//! The shared memory that a PostgreSQL of a manifest needs: from a server of that major, else estimated.

use std::collections::BTreeMap;

use hugepage_assess::model::Requested;
use hugepage_kernel::postgresql::size_setting;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages};
use hugepage_start::libraries::LIBRARIES;
use hugepage_start::{StartAnswer, majors};

use super::estimate::{self, EstimateSettings};
use super::settings::{KnownSettings, NotUnderstood, not_understood};
use super::words::is_one_of;

/// The settings that a server is asked with: numbers and choices that bear on the size of shared memory. A manifest may be a
/// stranger's: none of them names a file or runs code.
const GIVEN_SETTINGS: &str = "shared_buffers max_connections superuser_reserved_connections reserved_connections wal_buffers wal_level \
    max_wal_senders max_replication_slots max_active_replication_origins max_worker_processes autovacuum_max_workers \
    autovacuum_worker_slots max_prepared_transactions max_locks_per_transaction max_pred_locks_per_transaction \
    min_dynamic_shared_memory shared_memory_type track_activity_query_size track_commit_timestamp \
    commit_timestamp_buffers multixact_member_buffers multixact_offset_buffers notify_buffers serializable_buffers \
    subtransaction_buffers transaction_buffers io_method io_workers io_max_concurrency io_combine_limit \
    io_max_combine_limit huge_pages";
/// The longest value of a setting that the program is given, in bytes.
const MAX_VALUE: usize = 40;

/// Bytes of one entry of pg_stat_statements, at most; 390 in version 15.
const STATEMENT: u64 = 700;

/// The source of a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedSource {
    /// `postgres -C` of this major.
    Server(u32),
    /// An estimate, and why.
    Estimate(String),
}

/// The shared memory that a server needs.
#[derive(Clone, Debug)]
pub struct Need {
    /// The least size.
    pub least: Bytes,
    /// The largest size, apart from `libraries`.
    pub most: Bytes,
    /// The source of both sizes.
    pub source: NeedSource,
    /// Libraries that may ask for more, how much is unknown.
    pub libraries: Vec<String>,
    /// The server's error against the settings; `None` if it refuses none.
    pub refused: Option<String>,
}

impl Need {
    /// The bounds in pages of `size`.
    pub fn pages(&self, size: PageSize) -> (Pages, Pages) {
        (size.pages_to_hold(self.least), size.pages_to_hold(self.most))
    }
}

/// Asks a server's program how much shared memory it needs with settings, without starting that server.
pub trait AskServer {
    /// Asks the program of a major version; returns that version and the answer. `major`: the version of the manifest,
    /// `None` if it does not say one. `wal_segment_mb`: the size of WAL segments in MB, `None` for the default. The
    /// error says why no program could be asked.
    fn ask(
        &mut self,
        major: Option<u32>,
        wal_segment_mb: Option<u32>,
        settings: &BTreeMap<&str, &str>,
    ) -> Result<(u32, StartAnswer<Bytes>), String>;
}

/// Settings that take shared memory and are not terms of the estimate.
const NOT_ESTIMATED: [&str; 3] = ["io_max_concurrency", "io_max_combine_limit", "io_method"];
/// Settings that take some hundred bytes each, which the bounds of the estimate hold up to this number.
const SMALL: [&str; 3] = ["max_replication_slots", "max_active_replication_origins", "max_logical_replication_workers"];
const MAX_SMALL: u64 = 1000;

/// The shared memory that a server with these settings needs.
pub fn need(
    servers: &mut dyn AskServer,
    postgres: &KnownSettings,
    requested: &Requested,
    notes: &mut Notes,
) -> Result<Need, NotUnderstood> {
    let (libraries_most, libraries) = of_libraries(postgres);
    let (mut need, refused) = match exact(servers, postgres) {
        Ok((least, most, major)) => {
            (Need { least, most, source: NeedSource::Server(major), libraries, refused: None }, None)
        }
        Err((why, refused)) => {
            let is_large = |name: &&&str| number(postgres, name, 0) > MAX_SMALL;
            let is_set = |name: &&&str| postgres.get(name).is_some();
            if let Some(name) = NOT_ESTIMATED.iter().find(is_set).or_else(|| SMALL.iter().find(is_large)) {
                return not_understood(format!(
                    "no server could be asked ({why}), and the estimate does not know {name}"
                ));
            }
            let (least, most) = estimate::shared_memory(&terms(postgres, requested, notes));
            (Need { least, most, source: NeedSource::Estimate(why), libraries, refused: None }, refused)
        }
    };
    need.refused = refused;
    need.most = need.most.saturating_add(libraries_most);
    Ok(need)
}

/// The bounds, which differ only by what settings do not say, and the major that was asked. The error says why the server
/// was not asked, and what it refused.
fn exact(
    servers: &mut dyn AskServer,
    postgres: &KnownSettings,
) -> Result<(Bytes, Bytes, u32), (String, Option<String>)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ' ' | '-' | '_');
    let is_relevant = |name: &str| is_one_of(GIVEN_SETTINGS, name) && postgres.has_setting(name);
    let relevant: Vec<_> = postgres.settings.iter().filter(|setting| is_relevant(&setting.name)).collect();
    let is_given = |value: &str| value.len() <= MAX_VALUE && value.chars().all(is_plain);
    if let Some(odd) = relevant.iter().find(|setting| !is_given(&setting.value)) {
        return Err((format!("{} has a value that postgres -C is not given", odd.name), None));
    }
    let settings = relevant.iter().map(|setting| (setting.name.as_str(), setting.value.as_str())).collect();
    let (major, answer) = servers.ask(postgres.major, postgres.wal_segment_mb, &settings).map_err(|why| (why, None))?;
    match answer {
        StartAnswer::Starts(size) => Ok((size, size, major)),
        StartAnswer::Refuses(why) => Err((format!("postgres -C of version {major} failed"), Some(why))),
        StartAnswer::Unknown(why) => Err((why, None)),
    }
}

/// The most that the libraries add, in bytes, and the names of those for which that is unknown.
fn of_libraries(postgres: &KnownSettings) -> (Bytes, Vec<String>) {
    let (mut most, mut unknown) = (Bytes(0), Vec::new());
    for library in postgres.libraries() {
        match LIBRARIES.iter().find(|(name, _)| *name == library) {
            Some(("pg_stat_statements", _)) => {
                let entries = number(postgres, "pg_stat_statements.max", 5000);
                most = most.saturating_add(Bytes(entries.saturating_mul(STATEMENT).saturating_add(1 << 20)));
            }
            Some((_, size)) => most = most.saturating_add(Bytes(*size)),
            None => unknown.push(library),
        }
    }
    (most, unknown)
}

fn number(postgres: &KnownSettings, name: &str, default: u64) -> u64 {
    postgres.get(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default)
}

fn terms(postgres: &KnownSettings, requested: &Requested, notes: &mut Notes) -> EstimateSettings {
    let number = |name: &str, default| number(postgres, name, default);
    let size = |name: &str, unit: u64| postgres.get(name).and_then(|value| size_setting(value, unit));
    let of_major = |since: u32, value: u64| if postgres.major.is_none_or(|major| major >= since) { value } else { 0 };
    if postgres.major.is_none() {
        notes.add("the manifest does not say the major version");
    }
    let workers = number("autovacuum_max_workers", 3).max(of_major(18, number("autovacuum_worker_slots", 16)));
    let slots: Bytes =
        ["commit_timestamp_buffers", "multixact_member_buffers", "multixact_offset_buffers", "notify_buffers"]
            .iter()
            .chain(&["serializable_buffers", "subtransaction_buffers", "transaction_buffers"])
            .filter_map(|name| size(name, 8 << 10))
            .fold(Bytes(0), Bytes::saturating_add);
    let locks = |major: u32| {
        let default = majors::max_locks_per_transaction(major);
        number("max_locks_per_transaction", default.unsigned_abs().into())
    };
    EstimateSettings {
        major: postgres.major,
        shared_buffers: requested.shared_buffers,
        wal_buffers: size("wal_buffers", 8 << 10),
        wal_segment: Bytes(u64::from(postgres.wal_segment_mb.unwrap_or(16)) << 20),
        max_connections: number("max_connections", 100),
        other_processes: workers
            .saturating_add(number("max_worker_processes", 8))
            .saturating_add(number("max_wal_senders", 10))
            .saturating_add(number("max_prepared_transactions", 0))
            .saturating_add(1),
        locks: (locks(postgres.major.unwrap_or(majors::FIRST_MAJOR)), locks(postgres.major.unwrap_or(u32::MAX))),
        predicate_locks: number("max_pred_locks_per_transaction", 64),
        query_size: size("track_activity_query_size", 1).map_or(1024, |size| size.0),
        added: size("min_dynamic_shared_memory", 1 << 20).unwrap_or_default().saturating_add(slots),
    }
}
