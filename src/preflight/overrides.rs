//! The values that a question about a start replaces, and the answer.

use hugepage_assess::model::Demand;
use hugepage_kernel::PageSize;
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
