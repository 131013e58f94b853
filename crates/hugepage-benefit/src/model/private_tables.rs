//! The page tables that processes of a server have for everything but its main segment.

use hugepage_kernel::Bytes;
use hugepage_kernel::proc::process::ProcessStatus;

/// A process whose page tables were counted, which stands for others of its kind.
#[derive(Clone, Copy, Debug)]
pub struct CountedProcess {
    /// The memory of the process when it was counted.
    pub status: ProcessStatus,
    /// The page tables of the process without those that it has for the main segment alone.
    pub private: Bytes,
}

/// One process of each kind; `None` where there is none, or its page tables could not be counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrivateTables {
    /// A process that serves a client.
    pub of_session: Option<CountedProcess>,
    /// A process that serves no client.
    pub of_other: Option<CountedProcess>,
}
