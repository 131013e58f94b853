//! The page tables that processes of a server have for everything but its main segment.

use hugepage_kernel::Bytes;
use hugepage_kernel::proc::process::ProcessStatus;

/// A process whose page tables were counted, which stands for others of its kind.
#[derive(Clone, Copy, Debug)]
pub struct CountedProcess {
    /// Its memory then.
    pub status: ProcessStatus,
    /// Its page tables without those that it has for the main segment alone.
    pub private: Bytes,
}

/// One process of each kind; `None` where there is none, or its page tables could not be counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrivateTables {
    /// It serves a client.
    pub of_session: Option<CountedProcess>,
    /// It does not.
    pub of_other: Option<CountedProcess>,
}
