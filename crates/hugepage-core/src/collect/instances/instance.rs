//! What is known of one server.

use std::fmt;
use std::time::SystemTime;

use super::memory::Memory;
use crate::assess::page_tables::PageTables;
use crate::assess::{Cause, Facts, Landing, Loss, Status};
use crate::read::oracle::{Kind as OracleKind, LastStart};
use crate::read::rlimit::LockedMemory;

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// PostgreSQL.
    PostgreSql,
    /// Oracle.
    Oracle(OracleKind),
}

impl fmt::Display for Kind {
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
pub enum Landed {
    /// In huge pages.
    All,
    /// In huge pages in part.
    Mixed,
    /// In huge pages, at least in part: more can't be seen without privilege.
    Some,
    /// In base pages.
    Nothing,
    /// In files of /dev/shm, because of MEMORY_TARGET.
    Amm,
    /// Not to be seen.
    Unknown,
}

impl Landed {
    /// Whether more can't be seen without privilege.
    pub const fn is_hidden(self) -> bool {
        matches!(self, Self::Some | Self::Unknown)
    }
}

impl fmt::Display for Landed {
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

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What it is.
    pub kind: Kind,
    /// Its SID, or its data directory; `process 4711` where that can't be seen.
    pub name: String,
    /// The postmaster, or PMON.
    pub pid: i32,
    /// ORACLE_HOME.
    pub home: Option<String>,
    /// PostgreSQL's data directory.
    pub directory: Option<String>,
    /// PostgreSQL's major version, Oracle's from its alert log.
    pub version: Option<String>,
    /// PostgreSQL's system identifier.
    pub system_identifier: Option<String>,
    /// When that process started.
    pub started: Option<SystemTime>,
    /// Its shared memory; `None` if it may not be seen.
    pub memory: Option<Memory>,
    /// Of all its processes.
    pub page_tables: PageTables,
    /// What it may lock.
    pub memlock: Option<LockedMemory>,
    /// Whether a process of it certainly has huge pages (`HugetlbPages` in its status).
    pub has_hugetlb_pages: bool,
    /// What the alert log says of the start of this very instance.
    pub last_start: Option<LastStart>,
    /// The assessment.
    pub status: Status,
    /// What its landing was seen in, the best first.
    pub evidence: Vec<&'static str>,
    /// Why it does not count for the host's verdict and pools, as `runs as alice`; `None` if it does.
    pub not_counted: Option<String>,
    /// What could not be seen of it.
    pub notes: Vec<String>,
}

impl Instance {
    /// Whether it counts for what is said of the whole host, and for the sizes of its pools.
    pub const fn counts(&self) -> bool {
        self.not_counted.is_none()
    }

    /// Takes into the assessment what was seen when it started.
    pub fn remember(&mut self, cause_at_start: Option<Cause>, loss: Option<Loss>) {
        self.assess_with(|facts| (facts.cause_at_start, facts.loss) = (cause_at_start, loss));
    }

    /// Assesses it again with other facts.
    pub(super) fn assess_with(&mut self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.status.facts.clone();
        change(&mut facts);
        self.status = Status::of(facts);
    }

    /// What kind of pages it is in, as far as that can be told by any evidence.
    pub fn landed_in(&self) -> Landing {
        if self.landed() == Landed::All { Landing::Hugetlb } else { self.status.facts.landing() }
    }

    /// Where its shared memory is.
    pub fn landed(&self) -> Landed {
        match self.status.facts.landing() {
            Landing::Hugetlb => Landed::All,
            Landing::Mixed => Landed::Mixed,
            Landing::Base if self.status.cause == Some(Cause::MemoryTarget) => Landed::Amm,
            Landing::Base | Landing::Thp | Landing::PartialThp => Landed::Nothing,
            // PostgreSQL's is in huge pages as a whole, or not at all.
            Landing::Unknown if self.has_hugetlb_pages && self.kind == Kind::PostgreSql => Landed::All,
            Landing::Unknown if self.has_hugetlb_pages => Landed::Some,
            Landing::Unknown => Landed::Unknown,
        }
    }
}
