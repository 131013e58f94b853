//! What is known of one server.

use std::fmt;

use hugepage_assess::assessment::Status;
use hugepage_assess::model::{Cause, Landing};

use super::identify::ServerIdentity;
use super::observe::ObservedMemory;

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

/// One server.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What tells it from others, and what its files tell of it.
    pub id: ServerIdentity,
    /// The memory of its processes.
    pub memory: ObservedMemory,
    /// The assessment.
    pub status: Status,
    /// The sources that show where it landed, the best first.
    pub evidence: Vec<&'static str>,
    /// What could not be read of it.
    pub notes: Vec<String>,
}

impl Instance {
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
            Landing::Unknown if self.memory.has_hugetlb_pages && self.id.postgresql().is_some() => InstanceLanding::All,
            Landing::Unknown if self.memory.has_hugetlb_pages => InstanceLanding::Some,
            Landing::Unknown => InstanceLanding::Unknown,
        }
    }
}
