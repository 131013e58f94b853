//! What a start of the server asks the kernel for.

use hugepage_kernel::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{HugePages, PoolState, Requested};

/// What a start asks the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// The settings.
    pub requested: Requested,
    /// `max_connections`.
    pub max_connections: u64,
    /// The main segment, before rounding up to whole pages.
    pub shared_memory: Bytes,
}

/// What the configuration on disk asks for, compared with the running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// The pool that a changed next start finds; `None` if it is unchanged or unknown.
    pub const fn pool_state(&self) -> Option<&PoolState> {
        if let Self::Changed(_, pool_state) = self { Some(pool_state) } else { None }
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
