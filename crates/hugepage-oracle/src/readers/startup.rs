//! The facts that an alert log has about one start of an instance.

use hugepage_assess::model::{Landing, LockLimit};
use hugepage_kernel::{Bytes, PageSize, Pages, Rlimit};
use serde::{Deserialize, Serialize};

use crate::readers::{Parameters, Timestamp};

/// What the line of an instance that ends has.
pub(super) const END: &str = "terminating the instance";

/// The last start in a log, up to PMON's start. [`LastStart::is_of`] tells whether it is that of the running instance.
///
/// Sizes that Oracle rounds down (`28 GB` for 14,497 pages) are as printed. What the log does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastStart {
    /// The time before the line; `None` in a log without its beginning.
    pub at: Option<Timestamp>,
    /// `normal`, `restrict`, `force`...
    pub mode: Option<String>,
    /// `PMON started with pid=2, OS id=4352`, in the PID namespace of the instance. `None` if the start did not get there.
    pub pmon: Option<i32>,
    /// `11.2.0.4.0`; where the log has it, with the release update (`19.24.0.0.0`).
    pub version: Option<String>,
    /// The spfile or pfile that was used, in ASM if it begins with `+`.
    pub parameter_file: Option<String>,
    /// `System parameters with non-default values`.
    pub parameters: Parameters,
    /// Of the parameters, or the value that was refused.
    pub use_large_pages: Option<String>,
    /// `Per process system memlock (soft) limit` (since 11.2.0.4).
    pub memlock: Option<Rlimit>,
    /// The table of page sizes (since 12.1), base pages first; of 11.2 the huge pages alone.
    pub page_sizes: Vec<LoggedPageRow>,
    /// What MEMORY_TARGET needs in /dev/shm, where that was too small (ORA-00845, which the log does not show).
    pub dev_shm: Option<Bytes>,
    /// What the operating system said of an error: the number of errno(3), as in `Linux-x86_64 Error: 28`.
    pub os_error: Option<u32>,
    /// Errors while starting, one line each: `ORA-27137: unable to allocate Large Pages ...`, `use_large_pages = FALSE
    /// is not a supported setting for database on Exadata`. A start that went well has none.
    pub errors: Vec<String>,
}

/// A row of the table since 12.1, or what the block of 11.2 has for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedPageRow {
    /// PAGESIZE.
    pub page_size: PageSize,
    /// AVAILABLE_PAGES; `None` for base pages, which have the word `Configured`.
    pub available: Option<Pages>,
    /// Whether the row is that of base pages.
    pub is_base: bool,
    /// EXPECTED_PAGES: what Oracle expected of this size.
    pub expected: Option<Pages>,
    /// ALLOCATED_PAGES: the pages that the instance got.
    pub allocated: Option<Pages>,
    /// ERROR(s), `None` for `NONE` and where the column is missing.
    pub error: Option<String>,
}

impl LastStart {
    /// The rows of the table for huge pages.
    pub fn huge_pages(&self) -> impl Iterator<Item = &LoggedPageRow> {
        self.page_sizes.iter().filter(|row| !row.is_base)
    }

    /// The pages in which the SGA landed at that start; `None` if the log does not show it.
    pub fn landed(&self) -> Option<Landing> {
        self.page_sizes.first()?;
        let mut allocated = self.huge_pages().map(|row| row.allocated);
        if allocated.all(|pages| pages == Some(Pages(0))) {
            return Some(Landing::Base);
        }
        let is_complete = |row: &LoggedPageRow| Some(row.allocated? >= row.expected?);
        let rows: Option<Vec<_>> = self.huge_pages().map(is_complete).collect();
        // A few base pages are used even in huge pages.
        Some(if rows?.contains(&false) {
            Landing::Mixed
        } else {
            Landing::Hugetlb
        })
    }

    /// Whether PMON did not start, of a start whose beginning the log has, or which has errors; or whether the instance ended before it
    /// had a database.
    pub fn failed(&self) -> bool {
        let is_end = |error: &String| error.contains(END);
        self.errors.last().is_some_and(is_end)
            || self.pmon.is_none() && (self.mode.is_some() || !self.errors.is_empty())
    }

    /// The errors of the table and of the start.
    pub fn all_errors(&self) -> impl Iterator<Item = &String> + Clone {
        let of_table = self.page_sizes.iter().filter_map(|row| row.error.as_ref());
        of_table.chain(&self.errors)
    }

    /// Whether an error of the start has that code.
    pub fn has_error(&self, code: u32) -> bool {
        let code = format!("ORA-{code}");
        self.all_errors().any(|error| error.starts_with(&code))
    }

    /// Whether an error is that huge pages, System V memory (ENOSPC) or /dev/shm were missing, or that the kernel refused pages to the
    /// owner: what the host may have by now.
    pub fn lacked_memory(&self) -> bool {
        let is_of_pages = |error: &String| {
            let error = error.to_ascii_lowercase();
            ["large pages", "system pages"]
                .iter()
                .any(|words| error.contains(words))
        };
        [27137, 27106, 27125]
            .into_iter()
            .any(|code| self.has_error(code))
            || self.has_error(27102) && self.os_error == Some(28)
            || self.dev_shm.is_some()
            || self.errors.iter().any(is_of_pages)
    }

    /// What refused huge pages of `size` bytes in all at that start: it found as many as it expected and got fewer. The memlock limit of the
    /// log, if that is too small. `None` if the log shows something else.
    pub fn refusal(&self, size: Bytes) -> Option<LockLimit> {
        let is_refused = |row: &LoggedPageRow| {
            row.available >= row.expected && row.allocated.is_some() && row.allocated < row.expected
        };
        let wanted = |row: &&LoggedPageRow| row.expected > Some(Pages(0));
        let mut wanted = self.huge_pages().filter(wanted).peekable();
        wanted.peek()?;
        wanted.all(is_refused).then_some(match self.memlock {
            Some(Rlimit::At(limit)) if limit < size => LockLimit::Memlock {
                limit,
                others: Bytes(0),
            },
            _ => LockLimit::Unexplained,
        })
    }

    /// The row of huge pages of `size`; `None` if the log does not have it.
    pub fn pages_of(&self, size: PageSize) -> Option<&LoggedPageRow> {
        self.huge_pages().find(|row| row.page_size == size)
    }

    /// Whether this is certainly the start of the instance whose PMON is `pmon`, started at `started` (Unix time).
    ///
    /// PMON starts seconds after the line, or minutes if a large SGA is prepared first. A log without UTC offset fits
    /// every time zone, so PMON's process id is compared too; inside a container it differs.
    pub fn is_of(&self, pmon: i32, started: i64) -> bool {
        /// The longest start, and the largest difference of clocks, in seconds.
        const MAX_START_SECONDS: i64 = 3600;
        const MAX_CLOCK_SKEW_SECONDS: i64 = 120;
        /// The largest offset of a time zone from UTC.
        const MAX_UTC_OFFSET_SECONDS: i64 = 14 * 3600;
        let Some(at) = &self.at else {
            return false;
        };
        let (since, offset) = match at.unix() {
            Some(unix) => (unix, 0),
            None if self.pmon == Some(pmon) => (at.local, MAX_UTC_OFFSET_SECONDS),
            None => return false,
        };
        let earliest = -offset - MAX_CLOCK_SKEW_SECONDS;
        (earliest..=offset + MAX_START_SECONDS).contains(&started.saturating_sub(since))
    }
}
