//! One line of the history: a checksum, and the state as JSON that text tools can read.

use hugepage_facts::{Cause, InstanceKey, Landing};
use hugepage_kernel::next_boot::BootLook;
use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Deserializer, Serialize};

use crate::assessment::{Outlook, Status, Threat};
use crate::columns::{self, Value};

/// The version of the format. A line of another version is skipped, not damaged.
pub const VERSION: u32 = 1;
/// A line that is longer without its line feed is damaged: no record needs as much.
pub const MAX_LINE_BYTES: usize = 64 << 10;

hugepage_facts::words! {
    /// What happened.
    #[derive(Default)]
    pub enum Event {
        /// The server started.
        Start,
        /// A backend crashed, and shared memory was allocated anew under the same postmaster.
        CrashRestart,
        /// The state changed while the server ran.
        #[default]
        Change,
        /// The segment has transparent huge pages since the last record, as after `hugepage-sidecar collapse`.
        Collapse,
        /// It has lost transparent huge pages while the server ran, as by swap.
        Split,
        /// `watch` found its data directory removed, or root said that it will not run here any more.
        Gone,
    }
}

impl Event {
    /// The name that users see.
    pub fn name(self) -> String {
        self.to_string().replace('_', " ")
    }

    /// Whether shared memory was allocated.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::Start | Self::CrashRestart)
    }
}

/// The instance of a record. A copy of a data directory elsewhere is another instance, without the history of its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceIdentity {
    /// The host's name.
    pub machine: String,
    /// The data directory.
    pub directory: String,
    /// PostgreSQL's system identifier.
    pub system_identifier: String,
    /// `server_version_num`.
    pub server_version_num: u32,
}

impl InstanceIdentity {
    /// Whether a record of `self` belongs to the history of `now`: the same cluster in the same directory of the same machine, or
    /// one that pg_upgrade made from it (another system identifier, a newer major), to which the file was copied.
    pub fn is_past_of(&self, now: &Self) -> bool {
        let same_cluster = self.system_identifier == now.system_identifier;
        let upgraded =
            !same_cluster && self.server_version_num / 10_000 < now.server_version_num / 10_000;
        self.machine == now.machine
            && (upgraded || (same_cluster && self.directory == now.directory))
    }
}

/// The state at one moment. Sizes are in bytes, counters in pages; `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub v: u32,
    /// RFC 3339, UTC, microseconds.
    pub recorded_at: String,
    /// What happened.
    pub event: Event,
    /// Allocations of shared memory by this postmaster.
    pub generation: i64,
    /// When the postmaster process started, as `recorded_at`.
    pub postmaster_start: String,
    /// `server_version`.
    pub server_version: String,
    /// The host's name.
    pub host: String,
    /// The kernel's identifier of this boot.
    pub boot_id: Option<String>,
    /// The instance.
    pub instance: InstanceIdentity,
    /// Its key on this host; `None` in a history of the server's own, which is in its directory, and in older ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<InstanceKey>,
    /// The mount point above its directory, or above `host_directory`; `None` where `key` is, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// Of a container: the directory of the host that it has above its data directory or home; `None` where `key` is, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_directory: Option<String>,
    /// The inode of the segment's mapping, by which another process finds the record of the running server; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<u64>,
    /// `hugetlb`, `thp`, `partial thp`, `base`, `unknown`.
    pub landed_in: Landing,
    /// Page size of the mapping.
    pub page_size: Option<PageSize>,
    /// The main segment.
    pub shared_memory: Option<Bytes>,
    /// Pages that it has or would take.
    pub pages_needed: Option<Pages>,
    /// The size of those pages; `None` in older records, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub huge_page_size: Option<PageSize>,
    /// The pool's pages, surplus included.
    pub nr_hugepages: Option<Pages>,
    /// The untouched pages of the pool.
    pub free_hugepages: Option<Pages>,
    /// The free pages that are reserved.
    pub resv_hugepages: Option<Pages>,
    /// The pages above the size that the pool was set to.
    pub surplus_hugepages: Option<Pages>,
    /// Page tables of the host.
    pub page_tables: Option<Bytes>,
    /// `hugetlb`, `base`, `fails`, `unknown`.
    pub restart_outlook: Outlook,
    /// Why the segment is not as asked.
    pub cause: Option<Cause>,
    /// What will take huge pages away although nothing has happened yet: `cgroup_limit`, `restart_fails`, `restart_loses`.
    #[serde(deserialize_with = "known_threats")]
    pub threats: Vec<Threat>,
    /// The state before something was lost; `None` if nothing was.
    pub lost: Option<Before>,
    /// What was lost or changed, as text.
    pub detail: Option<String>,
    /// The first look after a boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootLook>,
}

/// The state that a regression lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// When it was last recorded.
    pub recorded_at: String,
    /// As in [`Record`].
    pub landed_in: Landing,
    /// As in [`Record`].
    pub page_size: Option<PageSize>,
    /// As in [`Record`].
    pub restart_outlook: Outlook,
}

impl Before {
    /// The state that `record` has.
    pub fn state_of(record: &Record) -> Self {
        Self {
            recorded_at: record.recorded_at.clone(),
            landed_in: record.landed_in,
            page_size: record.page_size,
            restart_outlook: record.restart_outlook,
        }
    }
}

/// A line of a history, with its line feed: eight hexadecimal digits of CRC-32, a space, and JSON.
pub fn line(content: &impl Serialize) -> String {
    let json = serde_json::to_string(content).unwrap_or_default();
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// A line of the history of boots.
#[derive(Serialize, Deserialize)]
struct BootLine {
    v: u32,
    boot: BootLook,
}

/// The line of a boot.
pub fn line_of_boot(look: &BootLook) -> String {
    line(&BootLine {
        v: VERSION,
        boot: look.clone(),
    })
}

/// The boot of a line without its line feed; `None` if it has none that is known here.
pub fn boot_of(line: &str) -> Option<BootLook> {
    let line: BootLine = serde_json::from_slice(Record::json_of(line.as_bytes())?).ok()?;
    (line.v == VERSION).then_some(line.boot)
}

/// Only the threats that this version knows; a later version may have more.
fn known_threats<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Threat>, D::Error> {
    let names = Vec::<Value>::deserialize(deserializer)?;
    Ok(names
        .into_iter()
        .filter_map(|name| serde_json::from_value(name).ok())
        .collect())
}

/// A value of a record in a sentence.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if !parts.is_empty() => {
            let parts: Vec<_> = parts.iter().map(shown).collect();
            parts.join(" and ")
        }
        Value::Array(_) | Value::Null => "none".to_owned(),
        number => number.to_string(),
    }
}

impl Record {
    /// The record of an assessment of `instance`, without what only its observer knows: when it started, and where.
    pub fn new(
        event: Event,
        recorded_at: String,
        instance: InstanceIdentity,
        status: &Status,
    ) -> Self {
        let facts = &status.facts;
        let pool = facts.pool();
        Self {
            v: VERSION,
            recorded_at,
            event,
            instance,
            landed_in: facts.landing(),
            page_size: facts.page_size(),
            shared_memory: facts.segment_size(),
            pages_needed: status.crash.needed,
            huge_page_size: facts.pool_state.huge_page_size,
            nr_hugepages: pool.map(|pool| pool.nr),
            free_hugepages: pool.map(|pool| pool.free),
            resv_hugepages: pool.and_then(|pool| pool.resv),
            surplus_hugepages: pool.and_then(|pool| pool.surplus),
            page_tables: facts.meminfo.page_tables,
            restart_outlook: status.forecast.outlook,
            cause: status.cause,
            threats: status.threats(),
            ..Self::default()
        }
    }

    /// Whether both records are of the same allocation of shared memory.
    pub fn is_of_same_start_as(&self, other: &Self) -> bool {
        (&self.postmaster_start, self.generation) == (&other.postmaster_start, other.generation)
    }

    /// The changes since `previous`, one phrase each. Counters that change on every busy host do not count.
    pub fn changes_since(&self, previous: &Self) -> Vec<String> {
        const COMPARED: [&str; 6] = [
            "landed_in",
            "page_size",
            "restart_outlook",
            "cause",
            "nr_hugepages",
            "threats",
        ];
        let (was, is) = (columns::value(previous), columns::value(self));
        COMPARED
            .into_iter()
            .filter(|name| was[name] != is[name])
            .map(|name| format!("{name} from {} to {}", shown(&was[name]), shown(&is[name])))
            .collect()
    }

    /// Appends the changes to what was lost.
    pub fn add_detail(&mut self, changes: &[String]) {
        let parts: Vec<_> = self.detail.iter().chain(changes).cloned().collect();
        self.detail = (!parts.is_empty()).then(|| parts.join("; "));
    }

    /// Its line.
    pub fn to_line(&self) -> String {
        line(self)
    }

    /// The JSON of a line without its line feed; `None` if the line is damaged.
    pub fn json_of(line: &[u8]) -> Option<&[u8]> {
        if line.len() > MAX_LINE_BYTES {
            return None;
        }
        let (checksum, json) = (line.get(..8)?, line.get(8..)?.strip_prefix(b" ")?);
        let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
        (checksum == crc32fast::hash(json)).then_some(json)
    }

    /// Takes a line without its line feed; `None` if it is damaged. A line that is whole, as its checksum shows, has no record
    /// for this program if another version of it wrote it.
    pub fn from_line(line: &[u8]) -> Option<Option<Self>> {
        let record = serde_json::from_slice(Self::json_of(line)?).ok();
        Some(record.filter(|record: &Self| record.v == VERSION))
    }
}
