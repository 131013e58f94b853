//! What is asked about a start, and the answers.

use hugepage_assess::model::Demand;
use hugepage_kernel::PageSize;

/// Why nobody asks.
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

/// The answer of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A start would ask for this memory.
    Starts(Demand),
    /// It depends on who starts the server.
    Either(Either),
    /// The server would not start; its error text.
    Refuses(String),
    /// The program could not be run, or its end says nothing about the configuration; the reason.
    Unknown(String),
}

/// Two starts: only `pg_ctl restart` repeats the options of the postmaster's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Either {
    /// With the options.
    pub with_options: Demand,
    /// Without them.
    pub files_alone: Demand,
    /// Why there are two, naming the options; a sentence for notes.
    pub note: String,
}
