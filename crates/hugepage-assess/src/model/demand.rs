//! What a start of the server asks the kernel for.

use hugepage_kernel::Bytes;

use crate::model::{Asked, PoolState};

/// What a start asks the kernel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The settings.
    pub asked: Asked,
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
    /// It asks for this.
    Changed(Demand, PoolState),
    /// The server would not start at all; the text of its error.
    Refused(String),
    /// It could not be determined; a note says why.
    Unknown,
}
