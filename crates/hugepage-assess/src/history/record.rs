//! One line of the history: a checksum, and the state as JSON that text tools can read.

use serde::{Deserialize, Deserializer, Serialize};

use crate::assessment::{Outlook, Status, Threat};
use crate::model::{Cause, Landing};

/// The version of the format. A line of another version is skipped, not damaged.
pub const VERSION: u32 = 1;
/// A line that is longer without its line feed is damaged: no record needs as much.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The server started.
    Start,
    /// A backend crashed, and shared memory was allocated anew under the same postmaster.
    CrashRestart,
    /// The state changed while the server ran.
    Change,
}

impl Event {
    /// The name that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::CrashRestart => "crash restart",
            Self::Change => "change",
        }
    }

    /// Whether shared memory was allocated.
    pub const fn is_start(self) -> bool {
        matches!(self, Self::Start | Self::CrashRestart)
    }
}

/// The instance of a record. A copy of a data directory elsewhere is another instance, without the history of its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        let upgraded = !same_cluster && self.server_version_num / 10_000 < now.server_version_num / 10_000;
        self.machine == now.machine && (upgraded || (same_cluster && self.directory == now.directory))
    }
}

/// The state at one moment. Sizes are in bytes, counters in pages; `None` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The inode of the segment's mapping, by which another process finds the record of the running server; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u64>,
    /// `hugetlb`, `thp`, `partial thp`, `base`, `unknown`.
    pub landed_in: Landing,
    /// Page size of the mapping.
    pub page_size: Option<u64>,
    /// The main segment.
    pub shared_memory: Option<u64>,
    /// Pages that it has or would take.
    pub pages_needed: Option<u64>,
    /// The pool's pages, surplus included.
    pub nr_hugepages: Option<u64>,
    /// The untouched pages of the pool.
    pub free_hugepages: Option<u64>,
    /// The free pages that are reserved.
    pub resv_hugepages: Option<u64>,
    /// The pages above the size that the pool was set to.
    pub surplus_hugepages: Option<u64>,
    /// Page tables of the host.
    pub page_tables: Option<u64>,
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
}

/// The state that a regression lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// When it was last recorded.
    pub recorded_at: String,
    /// As in [`Record`].
    pub landed_in: Landing,
    /// As in [`Record`].
    pub page_size: Option<u64>,
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

/// Only the threats that this version knows; a later version may have more.
fn known_threats<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Threat>, D::Error> {
    let names = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(names.into_iter().filter_map(|name| serde_json::from_value(name).ok()).collect())
}

impl Record {
    /// The record of an assessment of `instance`, without what only its observer knows: when it started, and where.
    pub fn new(event: Event, recorded_at: String, instance: InstanceIdentity, status: &Status) -> Self {
        let facts = &status.facts;
        let pool = facts.pool_state.pool.known();
        Self {
            v: VERSION,
            recorded_at,
            event,
            generation: 0,
            postmaster_start: String::new(),
            server_version: String::new(),
            host: String::new(),
            boot_id: None,
            instance,
            segment: None,
            landed_in: facts.landing(),
            page_size: facts.page_size().map(|size| size.bytes().0),
            shared_memory: facts.segment.as_ref().map(|segment| segment.size.0),
            pages_needed: status.needed.map(|pages| pages.0),
            nr_hugepages: pool.map(|pool| pool.nr.0),
            free_hugepages: pool.map(|pool| pool.free.0),
            resv_hugepages: pool.and_then(|pool| pool.resv).map(|pages| pages.0),
            surplus_hugepages: pool.and_then(|pool| pool.surplus).map(|pages| pages.0),
            page_tables: facts.meminfo.as_ref().and_then(|meminfo| meminfo.page_tables).map(|size| size.0),
            restart_outlook: status.outlook,
            cause: status.cause,
            threats: status.threats(),
            lost: None,
            detail: None,
        }
    }

    /// Whether both records are of the same allocation of shared memory.
    pub fn is_of_same_start_as(&self, other: &Self) -> bool {
        (&self.postmaster_start, self.generation) == (&other.postmaster_start, other.generation)
    }

    /// The changes since `previous`, one phrase each. Counters that change on every busy host do not count.
    pub fn changes_since(&self, previous: &Self) -> Vec<String> {
        let shown = |value: Option<String>| value.unwrap_or("none".to_owned());
        let state = |record: &Self| {
            let threats: Vec<_> = record.threats.iter().map(Threat::to_string).collect();
            [
                ("landed_in", record.landed_in.to_string()),
                ("page_size", shown(record.page_size.map(|size| size.to_string()))),
                ("restart_outlook", record.restart_outlook.to_string()),
                ("cause", shown(record.cause.map(|cause| cause.to_string()))),
                ("nr_hugepages", shown(record.nr_hugepages.map(|pages| pages.to_string()))),
                ("threats", shown(Some(threats.join(" and ")).filter(|threats| !threats.is_empty()))),
            ]
        };
        let changed = state(previous).into_iter().zip(state(self)).filter(|(was, is)| was != is);
        changed.map(|((name, was), (_, is))| format!("{name} from {was} to {is}")).collect()
    }

    /// Appends the changes to what was lost.
    pub fn add_detail(&mut self, changes: &[String]) {
        let parts: Vec<_> = self.detail.iter().chain(changes).cloned().collect();
        self.detail = (!parts.is_empty()).then(|| parts.join("; "));
    }

    /// The line, with its line feed: eight hexadecimal digits of CRC-32, a space, and JSON.
    pub fn to_line(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
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
