//! What the server's program is asked about a start, and what it says.

use hugepage_assess::model::Demand;
use hugepage_kernel::PageSize;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_start::{StartAnswer, TwoStarts};

/// The reason why the server's program is not asked.
pub const IS_OFF: &str = "the server's program is not asked, because pg_hugepages.ask_server_program is off";

/// Values that replace those on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `shared_buffers`, in blocks.
    pub shared_buffers: Option<i32>,
    /// `max_connections`.
    pub max_connections: Option<i32>,
    /// `huge_page_size`.
    pub huge_page_size: Option<PageSize>,
}

/// The answer on the next start of this server, with and without the options of its command line.
pub type Answer = StartAnswer<TwoStarts<Demand>>;

/// What the server's program says of a start.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The answer.
    pub answer: Answer,
    /// What the recovery of a standby would compare with its primary's settings; `None` for another server.
    pub recovery: Option<RecoveryParameters>,
}

impl Asked {
    /// No answer; the reason.
    pub const fn unknown(why: String) -> Self {
        Self { answer: Answer::Unknown(why), recovery: None }
    }
}
