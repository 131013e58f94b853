//! The shared memory that a PostgreSQL of a manifest needs: from a server of that major, else estimated.

use std::collections::BTreeMap;

use hugepage_assess::model::Requested;
use hugepage_kernel::postgresql::size_setting;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages};
use hugepage_start::StartAnswer;
use hugepage_start::libraries::LIBRARIES;

use super::estimate::{self, EstimateSettings};
use super::postgres::Postgres;

/// The settings that a server is asked with: numbers and choices that bear on the size of shared memory. A manifest may be a
/// stranger's: none of them names a file or runs code.
const GIVEN_SETTINGS: [&str; 32] = [
    "shared_buffers",
    "max_connections",
    "superuser_reserved_connections",
    "reserved_connections",
    "wal_buffers",
    "wal_level",
    "max_wal_senders",
    "max_replication_slots",
    "max_active_replication_origins",
    "max_worker_processes",
    "autovacuum_max_workers",
    "autovacuum_worker_slots",
    "max_prepared_transactions",
    "max_locks_per_transaction",
    "max_pred_locks_per_transaction",
    "min_dynamic_shared_memory",
    "shared_memory_type",
    "track_activity_query_size",
    "track_commit_timestamp",
    "commit_timestamp_buffers",
    "multixact_member_buffers",
    "multixact_offset_buffers",
    "notify_buffers",
    "serializable_buffers",
    "subtransaction_buffers",
    "transaction_buffers",
    "io_method",
    "io_workers",
    "io_max_concurrency",
    "io_combine_limit",
    "io_max_combine_limit",
    "huge_pages",
];
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

/// The shared memory that `postgres` needs.
pub fn need(servers: &mut dyn AskServer, postgres: &Postgres, requested: &Requested, notes: &mut Notes) -> Need {
    let (libraries_most, libraries) = of_libraries(postgres);
    let (mut need, refused) = match exact(servers, postgres, notes) {
        Ok((least, most, major)) => {
            (Need { least, most, source: NeedSource::Server(major), libraries, refused: None }, None)
        }
        Err((why, refused)) => {
            let (least, most) = estimate::shared_memory(&terms(postgres, requested, notes));
            (Need { least, most, source: NeedSource::Estimate(why), libraries, refused: None }, refused)
        }
    };
    need.refused = refused;
    need.most = need.most.saturating_add(libraries_most);
    if let Some(most) = postgres.max_connections_at_most {
        let more = u64::from(most).saturating_sub(number(postgres, "max_connections", 100));
        need.most = need.most.saturating_add(Bytes(more.saturating_mul(110 << 10)));
    }
    need
}

/// The shared memory that initdb's own server needs: 128 MB of shared_buffers and 100 connections (initdb.c,
/// `test_config_settings`).
pub fn need_of_initdb(servers: &mut dyn AskServer, postgres: &Postgres) -> Bytes {
    let own = Postgres {
        settings: Vec::new(),
        resources: postgres.resources.clone(),
        place: postgres.place.clone(),
        settings_home: None,
        settings_unknown: None,
        max_connections_at_most: None,
        name: String::new(),
        ..*postgres
    };
    let mut notes = Notes::default();
    let requested = own.requested_memory(&mut notes);
    need(servers, &own, &requested, &mut notes).least
}

/// The bounds, which differ only by what settings do not say, and the major that was asked. The error says why the server
/// was not asked, and what it refused.
fn exact(
    servers: &mut dyn AskServer,
    postgres: &Postgres,
    notes: &mut Notes,
) -> Result<(Bytes, Bytes, u32), (String, Option<String>)> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ' ' | '-' | '_');
    let relevant = postgres.settings.iter().filter(|(name, _, _)| GIVEN_SETTINGS.contains(&name.as_str()));
    let (given, withheld): (Vec<_>, Vec<_>) =
        relevant.partition(|(_, value, _)| value.len() <= MAX_VALUE && value.chars().all(is_plain));
    let settings = given.iter().map(|(name, value, _)| (name.as_str(), value.as_str())).collect();
    let (major, answer) = servers.ask(postgres.major, postgres.wal_segment_mb, &settings).map_err(|why| (why, None))?;
    for (name, _, _) in withheld {
        notes.add(format!("{name} has a value that was not given to postgres -C"));
    }
    match answer {
        StartAnswer::Starts(size) => Ok((size, size, major)),
        StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => {
            Err((format!("postgres -C of version {major} failed"), Some(why)))
        }
    }
}

/// The most that the libraries add, in bytes, and the names of those for which that is unknown.
fn of_libraries(postgres: &Postgres) -> (Bytes, Vec<String>) {
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

fn number(postgres: &Postgres, name: &str, default: u64) -> u64 {
    postgres.setting(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default)
}

fn terms(postgres: &Postgres, requested: &Requested, notes: &mut Notes) -> EstimateSettings {
    let number = |name: &str, default| number(postgres, name, default);
    let size = |name: &str, unit: u64| postgres.setting(name).and_then(|value| size_setting(value, unit));
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
    EstimateSettings {
        major: postgres.major,
        shared_buffers: requested.shared_buffers,
        wal_buffers: size("wal_buffers", 8 << 10),
        max_connections: number("max_connections", 100),
        other_processes: workers
            .saturating_add(number("max_worker_processes", 8))
            .saturating_add(number("max_wal_senders", 10))
            .saturating_add(number("max_prepared_transactions", 0))
            .saturating_add(1),
        locks: number("max_locks_per_transaction", 64),
        predicate_locks: number("max_pred_locks_per_transaction", 64),
        query_size: size("track_activity_query_size", 1).map_or(1024, |size| size.0),
        added: size("min_dynamic_shared_memory", 1 << 20).unwrap_or_default().saturating_add(slots),
    }
}
