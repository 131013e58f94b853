//! The settings of one server, and how they came about. A server is judged only where all of them are known: every reader of a
//! manifest gives [`KnownSettings`] whole, or the reason why not.

use std::fmt;

use hugepage_assess::model::{HugePages, Requested, requested_by_settings};
use hugepage_kernel::Notes;
use hugepage_kernel::postgresql::size_setting;

use super::setting_names;
use super::words::is_one_of;
use super::yaml::LocatedNode;

/// The reason why the settings of a server are unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotUnderstood(pub String);

impl fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses to know more, with the reason.
pub fn not_understood<T>(reason: impl Into<String>) -> Result<T, NotUnderstood> {
    Err(NotUnderstood(reason.into()))
}

/// A setting with the place where the manifest has it; `None` for a default of an operator.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The name in lower case.
    pub name: String,
    /// The value as it is written, without quotes.
    pub value: String,
    /// The place of the value.
    pub place: Option<LocatedNode>,
}

impl Setting {
    /// A setting that no manifest has.
    pub fn default_of_operator(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned(), place: None }
    }

    /// A setting of a manifest.
    pub fn of_manifest(name: &str, value: &str, place: LocatedNode) -> Self {
        Self { name: name.to_ascii_lowercase(), value: value.to_owned(), place: Some(place) }
    }
}

/// How initdb runs when the data directory is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initdb {
    /// No initdb, or one that asks for no huge pages of the default size.
    Harmless,
    /// One that asks for huge pages of the default size; the text says how to tell it not to, if that is possible.
    AsksForPages(Option<&'static str>),
}

/// All settings that bear on shared memory, understood.
#[derive(Clone, Debug)]
pub struct KnownSettings {
    /// The major version; `None` if the manifest does not say it.
    pub major: Option<u32>,
    /// Settings in the order in which they count: the last one of a name is effective.
    pub settings: Vec<Setting>,
    /// The mapping that settings can be added to.
    pub home: Option<LocatedNode>,
    /// `wal_segment_size` in MB, if the manifest sets it for initdb.
    pub wal_segment_mb: Option<u32>,
    /// How initdb runs.
    pub initdb: Initdb,
}

impl KnownSettings {
    /// The settings of a server of this major, if each value of consequence is one that PostgreSQL accepts.
    pub fn checked(
        major: Option<u32>,
        settings: Vec<Setting>,
        home: Option<LocatedNode>,
        initdb: Initdb,
    ) -> Result<Self, NotUnderstood> {
        if let Some(major) = major.filter(|major| !setting_names::MAJORS.contains(major)) {
            let (first, last) = (setting_names::MAJORS.start(), setting_names::MAJORS.end());
            return not_understood(format!("PostgreSQL {major} is not one of the known majors, {first} to {last}"));
        }
        for Setting { name, value, .. } in &settings {
            check_value(name, value)?;
        }
        Ok(Self { major, settings, home, wal_segment_mb: None, initdb })
    }

    fn effective(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.name == name)
    }

    /// The effective value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.effective(name).map(|setting| setting.value.as_str())
    }

    /// The place of the effective value of a setting; `None` if no file has it.
    pub fn place_of(&self, name: &str) -> Option<&LocatedNode> {
        self.effective(name).and_then(|setting| setting.place.as_ref())
    }

    /// The pages and memory that the settings ask for, as for a server whose configuration file has them.
    pub fn requested_memory(&self, notes: &mut Notes) -> Requested {
        requested_by_settings(|name| self.get(name).map(str::to_owned), notes)
    }

    /// Whether the major has this setting; unknown majors have all of them.
    pub fn has_setting(&self, name: &str) -> bool {
        setting_names::exists(name, self.major)
    }

    /// `shared_preload_libraries` without directories.
    pub fn libraries(&self) -> Vec<String> {
        let text = self.get("shared_preload_libraries").unwrap_or_default();
        let names = text.split(',').map(|name| name.trim().trim_matches('"'));
        let names = names.map(|name| name.rsplit('/').next().unwrap_or_default().trim_end_matches(".so").to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }
}

/// Sizes in blocks of 8 kB that bear on shared memory.
const IN_BLOCKS: &str = "shared_buffers wal_buffers commit_timestamp_buffers multixact_member_buffers multixact_offset_buffers \
    notify_buffers serializable_buffers subtransaction_buffers transaction_buffers";
/// The most processes of a server (procnumber.h).
const MAX_BACKENDS: u32 = 0x3FFFF;
/// Whole numbers that bear on shared memory, with the least and the most that PostgreSQL accepts.
const NUMBERS: [(u32, u32, &str); 4] = [
    (
        0,
        MAX_BACKENDS,
        "superuser_reserved_connections reserved_connections max_wal_senders max_replication_slots max_worker_processes \
    max_active_replication_origins max_logical_replication_workers max_prepared_transactions max_repack_replication_slots",
    ),
    (
        1,
        MAX_BACKENDS,
        "max_connections autovacuum_max_workers autovacuum_worker_slots io_workers io_min_workers io_max_workers",
    ),
    (10, i32::MAX as u32, "max_locks_per_transaction max_pred_locks_per_transaction"),
    (64, i32::MAX as u32, "max_notify_queue_pages pg_stat_statements.max"),
];

/// A value that PostgreSQL does not accept leaves the server without the setting, or the server does not start.
fn check_value(name: &str, value: &str) -> Result<(), NotUnderstood> {
    let text = value.trim();
    let is_size = |unit: u64| size_setting(text, unit).is_some_and(|size| size.0 < 1 << 45);
    // A zero before other digits is for octal numbers.
    let is_decimal = text == "0" || !text.starts_with('0');
    let is_number = |(least, most): (u32, u32)| {
        is_decimal && text.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number))
    };
    let kind = match name {
        "huge_pages" => (HugePages::parse(value).is_some(), "on, off or try"),
        "huge_page_size" => {
            let size = size_setting(text, 1 << 10);
            (size.is_some_and(|size| size.0 == 0 || size.0.is_power_of_two()), "the size of a huge page")
        }
        "shared_memory_type" => (["mmap", "sysv"].iter().any(|kind| kind.eq_ignore_ascii_case(value)), "mmap or sysv"),
        "shared_buffers" if size_setting(text, 8 << 10).is_some_and(|size| size.0 < 128 << 10) => {
            (false, "128 kB or more")
        }
        "shared_preload_libraries" if text.contains('\'') => {
            return not_understood(format!("no library has the name {text}, with its quotes"));
        }
        "wal_buffers" if text == "-1" => (true, ""),
        "track_activity_query_size" => (is_size(1), "a size"),
        "min_dynamic_shared_memory" => (is_size(1 << 20), "a size"),
        _ if is_one_of(IN_BLOCKS, name) => (is_size(8 << 10), "a size"),
        _ => {
            let range = NUMBERS.iter().find(|(_, _, names)| is_one_of(names, name));
            (range.is_none_or(|(least, most, _)| is_number((*least, *most))), "a number that PostgreSQL accepts")
        }
    };
    match kind {
        (true, _) => Ok(()),
        (false, kind) => not_understood(format!("{name} = \"{value}\" is not {kind}")),
    }
}
