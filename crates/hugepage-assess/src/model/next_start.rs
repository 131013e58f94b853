//! What a next start of a server asks the kernel for, and what it is compared with: the running server.

use hugepage_facts::Landing;
use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::{HugePages, PoolFact, PoolState, Requested, Segment};

/// What a start asks the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The settings.
    pub requested: Requested,
    /// `max_connections`.
    pub max_connections: u64,
    /// The main segment, before rounding up to whole pages.
    pub shared_memory: Bytes,
}

/// What the configuration on disk asks for, compared with the running server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each server")]
pub enum Pending {
    /// The next start asks for what the running server has.
    Unchanged,
    /// The next start asks for this.
    Changed(Demand, PoolState),
    /// The server would not start at all; the text of its error.
    Refused(String),
    /// The next start could not be determined; a note says why.
    Unknown,
}

impl Pending {
    /// What the next start asks for; what the running server has asked for where that is unknown.
    pub const fn requested_next(&self, running: Requested) -> Requested {
        match self {
            Self::Changed(demand, _) => demand.requested,
            Self::Unchanged | Self::Refused(_) | Self::Unknown => running,
        }
    }

    /// Whether the next start asks for huge pages, or may do so because its settings are unknown.
    pub fn may_request_next(&self, running: Requested) -> bool {
        *self == Self::Unknown || self.requested_next(running).huge_pages != HugePages::Off
    }

    /// What the next start finds where other instances of the user hold that much memory.
    #[must_use]
    pub fn beside(self, held: Bytes) -> Self {
        match self {
            Self::Changed(demand, pool_state) => Self::Changed(demand, pool_state.beside(held)),
            other => other,
        }
    }
}

/// What a running server asked for when it started, and got.
#[derive(Clone, Copy, Debug)]
pub struct CurrentStart<'a> {
    /// The settings.
    pub requested: Requested,
    /// The running segment.
    pub segment: Option<&'a Segment>,
    /// The pool of the segment if that is in huge pages, else of the size that `huge_page_size` asks for.
    pub pool_state: &'a PoolState,
}

impl CurrentStart<'_> {
    /// Where the segment landed.
    pub fn landing(&self) -> Landing {
        self.segment
            .map_or(Landing::Unknown, |segment| segment.landing)
    }

    /// The page size of the running segment.
    pub fn page_size(&self) -> Option<PageSize> {
        self.segment?.page_size
    }

    /// The pages of the pool that the server has.
    pub fn own(&self) -> Pages {
        match (self.segment, self.pool_state.huge_page_size) {
            (Some(segment), Some(page)) if segment.page_size == Some(page) => {
                page.pages_to_hold(segment.in_huge_pages)
            }
            _ => Pages(0),
        }
    }

    /// Whether the running server already has what a start with `demand` would ask for.
    pub fn is_met_by(&self, demand: &Demand) -> bool {
        let Some(segment) = self.segment else {
            return false;
        };
        let size = match (segment.landing, segment.page_size) {
            (Landing::Hugetlb, Some(page)) => page.times(page.pages_to_hold(demand.shared_memory)),
            _ => demand.shared_memory,
        };
        demand.requested == self.requested && size == segment.size
    }

    /// The pages of the pool that the next start asks for and the server has not; zero if that is unknown. With
    /// `shared_memory_type = sysv` those that it asks for with `mmap`, which is what the advice says to set.
    pub fn lack(&self, pending: &Pending) -> Pages {
        let page = self.pool_state.huge_page_size;
        let size = match pending {
            Pending::Changed(demand, found) if found.huge_page_size == page => demand.shared_memory,
            _ => Bytes(0),
        };
        let wants = pending.may_request_next(self.requested)
            && !pending.requested_next(self.requested).is_in_files();
        let (Some(segment), Some(page), PoolFact::Known(_), true) =
            (self.segment, page, &self.pool_state.pool, wants)
        else {
            return Pages(0);
        };
        page.pages_to_hold(segment.to_reserve.max(size))
            .saturating_sub(self.own())
    }
}

/// A standby whose primary has raised its settings goes on until its next start or crash (`CheckRequiredParameterValues`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CrashRecovery {
    /// Nothing that is known prevents it.
    #[default]
    Possible,
    /// The server's error text.
    Refused(String),
    /// The reason why it is unknown.
    Unknown(String),
}

impl CrashRecovery {
    /// The error as a part of a sentence.
    pub fn error(&self) -> Option<String> {
        let Self::Refused(text) = self else {
            return None;
        };
        let text = text.strip_prefix("FATAL:  ").unwrap_or(text);
        Some(
            text.replace("\nDETAIL:  ", ": ")
                .trim_end_matches('.')
                .to_owned(),
        )
    }
}
