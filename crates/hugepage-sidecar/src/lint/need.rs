//! How much shared memory a PostgreSQL of a manifest needs: from a server of that major, else estimated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hugepage_assess::model::Asked;
use hugepage_host::size_setting;
use hugepage_kernel::{Bytes, Notes, PageSize, Pages};
use hugepage_start::{StartAnswer, majors};

use super::estimate::{self, Terms};
use super::postgres::Postgres;
use crate::server_program::empty_cluster::EmptyCluster;
use crate::server_program::libraries::LIBRARIES;
use crate::server_program::trust::{self, ProgramAccount};
use crate::server_program::{ANSWER_TIMEOUT, child, packaged};

/// The settings that a server is asked with: numbers and choices that bear on the size of shared memory. A manifest may be a
/// stranger's: none of them names a file or runs code.
const ASKED_WITH: [&str; 32] = [
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
/// The longest value of one of them.
const MAX_VALUE: usize = 40;

/// Bytes of one entry of pg_stat_statements, at most; of 15 it is 390.
const STATEMENT: u64 = 700;

/// Where a size is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `postgres -C` of this major.
    Server(u32),
    /// An estimate, and why.
    Estimate(String),
}

/// The shared memory that a server needs.
#[derive(Clone, Debug)]
pub struct Need {
    /// At least.
    pub least: Bytes,
    /// At most, apart from `libraries`.
    pub most: Bytes,
    /// Where it is from.
    pub source: Source,
    /// Libraries that may ask for more, how much is unknown.
    pub libraries: Vec<String>,
    /// What a server of that major says against the settings.
    pub refused: Option<String>,
}

impl Need {
    /// The same in pages.
    pub fn pages(&self, size: PageSize) -> (Pages, Pages) {
        (size.pages_to_hold(self.least), size.pages_to_hold(self.most))
    }
}

/// The servers that can be asked, each started at most once.
#[derive(Debug)]
pub struct Servers {
    /// The program that the user names.
    named: Option<Result<(u32, PathBuf), String>>,
    /// Whether programs are run at all.
    may_run: bool,
    known: BTreeMap<(u32, Option<u32>), Result<EmptyCluster, String>>,
}

impl Servers {
    /// `directory`: that of `postgres`, or above its `bin`. None is run where the host is a captured one.
    pub fn new(directory: Option<&Path>, may_run: bool) -> Self {
        let named = directory.filter(|_| may_run).map(|directory| {
            let programs = [directory.join("postgres"), directory.join("bin/postgres"), directory.to_owned()];
            let program = programs.into_iter().find(|path| path.is_file());
            let program = program.ok_or_else(|| format!("no program postgres in {}", directory.display()))?;
            Ok((version(&program)?, program))
        });
        Self { named, may_run, known: BTreeMap::new() }
    }

    /// Why the program that the user names cannot be asked.
    pub fn error(&self) -> Option<&str> {
        self.named.as_ref()?.as_ref().err().map(String::as_str)
    }

    fn program(&self, major: Option<u32>) -> Result<(u32, PathBuf), String> {
        if !self.may_run {
            return Err("no program is run with --root".to_owned());
        }
        match (&self.named, major) {
            (Some(Ok((named, program))), major) if major.is_none_or(|major| major == *named) => {
                return Ok((*named, program.clone()));
            }
            (Some(Err(why)), _) => return Err(why.clone()),
            _ => {}
        }
        let Some(major) = major else {
            return Err("the manifest does not say the major version".to_owned());
        };
        match packaged(major).find(|path| path.is_file()) {
            _ if major < majors::FIRST_MAJOR => Err(format!("PostgreSQL {major} does not report it")),
            Some(program) => Ok((major, program)),
            None => Err(format!("PostgreSQL {major} is not installed here")),
        }
    }

    fn ask(&mut self, major: u32, program: &Path, wal_segment_mb: Option<u32>) -> Result<&EmptyCluster, String> {
        let start = || EmptyCluster::new(program, major, wal_segment_mb);
        self.known.entry((major, wal_segment_mb)).or_insert_with(start).as_ref().map_err(Clone::clone)
    }

    /// What `postgres` needs.
    pub fn need(&mut self, postgres: &Postgres, asked: &Asked, notes: &mut Notes) -> Need {
        let (libraries_most, libraries) = of_libraries(postgres);
        let (mut need, refused) = match self.exact(postgres, notes) {
            Ok((least, most, major)) => {
                (Need { least, most, source: Source::Server(major), libraries, refused: None }, None)
            }
            Err((why, refused)) => {
                let (least, most) = estimate::shared_memory(&terms(postgres, asked, notes));
                (Need { least, most, source: Source::Estimate(why), libraries, refused: None }, refused)
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

    /// What initdb's own server needs: 128 MB of shared_buffers and 100 connections (initdb.c, `test_config_settings`).
    pub fn of_initdb(&mut self, postgres: &Postgres) -> Bytes {
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
        let asked = own.asked(&mut notes);
        self.need(&own, &asked, &mut notes).least
    }

    /// The bounds, which differ only by what settings do not say, and the major that was asked. The error says why the server
    /// was not asked, and what it refused.
    fn exact(
        &mut self,
        postgres: &Postgres,
        notes: &mut Notes,
    ) -> Result<(Bytes, Bytes, u32), (String, Option<String>)> {
        let (major, program) = self.program(postgres.major).map_err(|why| (why, None))?;
        let cluster = self.ask(major, &program, postgres.wal_segment_mb).map_err(|why| (why, None))?;
        let mut settings = BTreeMap::new();
        for (name, value, _) in &postgres.settings {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ' ' | '-' | '_');
            match ASKED_WITH.contains(&name.as_str()) {
                true if value.len() <= MAX_VALUE && value.chars().all(is_plain) => {
                    settings.insert(name.as_str(), value.as_str());
                }
                true => notes.add(format!("{name} has a value that was not given to postgres -C")),
                false => {}
            }
        }
        match cluster.shared_memory(settings.into_iter()) {
            StartAnswer::Starts(size) => Ok((size, size, major)),
            StartAnswer::Refuses(why) | StartAnswer::Unknown(why) => {
                Err((format!("postgres -C of version {major} failed"), Some(why)))
            }
        }
    }
}

/// The major version of a program.
fn version(program: &Path) -> Result<u32, String> {
    let account = ProgramAccount::without_privileges()?;
    let program = trust::check_program(program, account)?;
    let output = child::run(&program, &["--version".into()], account, ANSWER_TIMEOUT)?;
    // postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1), 19devel
    let number = output.stdout.split_whitespace().nth(2).unwrap_or_default();
    let major = number.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse().ok());
    match major {
        Some(major) if major >= majors::FIRST_MAJOR => Ok(major),
        _ => Err(format!("{} is PostgreSQL \"{number}\", and 15 is the first that reports it", program.display())),
    }
}

/// At most how much the libraries add, and those of which it is unknown.
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

fn terms(postgres: &Postgres, asked: &Asked, notes: &mut Notes) -> Terms {
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
    Terms {
        major: postgres.major,
        shared_buffers: asked.shared_buffers,
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
