//! What is known of one server.

use std::fmt;
use std::time::SystemTime;

use hugepage_assess::assessment::Status;
use hugepage_assess::assessment::page_tables::PageTables;
use hugepage_assess::model::{Cause, Demand, Facts, HugePages, Landing, Loss, Pending};
use hugepage_kernel::proc::rlimit::LockedMemory;
use hugepage_kernel::{Bytes, Pages};
use hugepage_oracle::readers::{LastStart, OracleKind};

use super::memory::InstanceMemory;

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceKind {
    /// PostgreSQL.
    PostgreSql,
    /// Oracle.
    Oracle(OracleKind),
}

impl fmt::Display for InstanceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PostgreSql => "postgresql",
            Self::Oracle(OracleKind::Database) => "oracle",
            Self::Oracle(OracleKind::Asm) => "asm",
            Self::Oracle(OracleKind::ManagementDatabase) => "mgmtdb",
            Self::Oracle(OracleKind::AsmProxy) => "apx",
            Self::Oracle(OracleKind::IoServer) => "ios",
        })
    }
}

/// Where all of a server's shared memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceLanding {
    /// In huge pages.
    All,
    /// In huge pages in part.
    Mixed,
    /// In huge pages, at least in part: more is not visible without privilege.
    Some,
    /// In base pages.
    Nothing,
    /// In files of /dev/shm, because of MEMORY_TARGET.
    Amm,
    /// Not visible.
    Unknown,
}

impl InstanceLanding {
    /// Whether more would be visible with privilege.
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Some | Self::Unknown)
    }
}

impl fmt::Display for InstanceLanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Mixed => "mixed",
            Self::Some => "some",
            Self::Nothing => "none",
            Self::Amm => "AMM",
            Self::Unknown => "unknown",
        })
    }
}

/// Whose server it is, and where: what keeps servers apart that call themselves the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstancePlace {
    /// The effective user of its process, as this program's user namespace has it; `None` if unknown.
    pub uid: Option<u32>,
    /// In a container whose files this program sees nowhere else: device and inode of its data directory or home,
    /// `8.1-1234`, or the number of its mount namespace.
    pub container: Option<String>,
    /// The host's name as it sees it, if that is another one: of its container.
    pub host_name: Option<String>,
}

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What it is.
    pub kind: InstanceKind,
    /// Its SID, or its data directory; `process 4711` where that is not visible.
    pub name: String,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// Whose it is, and where.
    pub place: InstancePlace,
    /// ORACLE_HOME.
    pub home: Option<String>,
    /// The names of its database (Oracle), by the path of its alert log and by its parameters; `None` if none is known.
    pub database: Option<Vec<String>>,
    /// PostgreSQL's data directory.
    pub directory: Option<String>,
    /// PostgreSQL's `pg_hugepages.history_directory`; `None` if it is not set.
    pub history_directory: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// PostgreSQL's system identifier.
    pub system_identifier: Option<String>,
    /// When that process started.
    pub started: Option<SystemTime>,
    /// Its shared memory; `None` if it may not be read.
    pub memory: Option<InstanceMemory>,
    /// Its Managed Global Area: files of /dev/shm beside the SGA (18c and later). `None` if its memory may not be read,
    /// and for PostgreSQL.
    pub managed_global_area: Option<Bytes>,
    /// The page tables of all its processes.
    pub page_tables: PageTables,
    /// The private memory (`RssAnon`) of the median of its processes; `None` if unknown, as before Linux 4.5.
    pub private_memory: Option<Bytes>,
    /// The memory that it may lock.
    pub memlock: Option<LockedMemory>,
    /// Whether one of its processes certainly has huge pages (`HugetlbPages` in its status).
    pub has_hugetlb_pages: bool,
    /// The path of its alert log, as its processes see it; `None` if none is visible.
    pub alert_log: Option<String>,
    /// What the alert log shows of the start of this instance.
    pub last_start: Option<LastStart>,
    /// The assessment.
    pub status: Status,
    /// The sources that show where it landed, the best first.
    pub evidence: Vec<&'static str>,
    /// Why it does not count for the host's verdict and pools, as `runs as alice`; `None` if it counts.
    pub not_counted: Option<String>,
    /// The user that it runs as.
    pub uid: Option<u32>,
    /// The name of that user, or `uid 4711` where /etc/passwd has none.
    pub owner: Option<String>,
    /// The systemd service that started it, to which limits.conf does not apply; `None` for what a session started.
    pub service: Option<String>,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl Instance {
    /// Whether it counts for the host's verdict and for the sizes of its pools.
    pub const fn counts(&self) -> bool {
        self.not_counted.is_none()
    }

    /// Adds to the assessment what was recorded when the server started. If the files have turned huge pages on since,
    /// the assessment is of a restart with them and the running size, with a note. `needed`: the pages that the server
    /// itself recorded as needed.
    pub fn remember(&mut self, cause_at_start: Option<Cause>, needed: Option<Pages>, loss: Option<Loss>) {
        let on_disk = self.status.facts.asked.huge_pages;
        let is_off = cause_at_start == Some(Cause::Disabled) && on_disk != HugePages::Off;
        if is_off {
            self.notes.push(format!(
                "the server started with huge_pages = off, but its files ask for huge_pages = {on_disk}; \
                 hugepage_preflight() in the server shows what a restart would get"
            ));
        }
        self.assess_with(|facts| {
            (facts.past.cause_at_start, facts.past.needed_at_start, facts.past.loss) = (cause_at_start, needed, loss);
            if let Some(segment) = facts.segment.as_ref().filter(|_| is_off) {
                // An assessment does not use the number of connections.
                let demand = Demand { asked: facts.asked, max_connections: 0, shared_memory: segment.to_reserve };
                // Files that have changed may ask for another size as well, or for nothing that the server accepts.
                if facts.pending == Pending::Unchanged {
                    facts.pending = Pending::Changed(demand, facts.ground.clone());
                }
                facts.asked.huge_pages = HugePages::Off;
            }
        });
    }

    /// Adds what the start lost, by another source than its record.
    pub fn remember_loss(&mut self, loss: Loss) {
        self.assess_with(|facts| facts.past.loss = Some(loss));
    }

    /// Assesses it again with other facts.
    pub(super) fn assess_with(&mut self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.status.facts.clone();
        change(&mut facts);
        self.status = Status::of(facts);
    }

    /// The kind of pages it is in, by all evidence.
    pub fn landed_in(&self) -> Landing {
        if self.landed() == InstanceLanding::All { Landing::Hugetlb } else { self.status.facts.landing() }
    }

    /// Where its shared memory is.
    pub fn landed(&self) -> InstanceLanding {
        match self.status.facts.landing() {
            Landing::Hugetlb => InstanceLanding::All,
            Landing::Mixed => InstanceLanding::Mixed,
            Landing::Base if self.status.cause == Some(Cause::MemoryTarget) => InstanceLanding::Amm,
            Landing::Base | Landing::Thp | Landing::PartialThp => InstanceLanding::Nothing,
            // PostgreSQL's is in huge pages as a whole, or not at all.
            Landing::Unknown if self.has_hugetlb_pages && self.kind == InstanceKind::PostgreSql => InstanceLanding::All,
            Landing::Unknown if self.has_hugetlb_pages => InstanceLanding::Some,
            Landing::Unknown => InstanceLanding::Unknown,
        }
    }
}
