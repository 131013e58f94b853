//! The facts that an alert log has about one start of an instance.

use hugepage_assess::model::Landing;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_kernel::{Bytes, PageSize, Pages};
use serde::{Deserialize, Serialize};

use crate::readers::{Parameters, Timestamp};

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
    /// The table of page sizes (since 12.1), base pages first; empty in older logs.
    pub page_sizes: Vec<LoggedPageRow>,
    /// What MEMORY_TARGET needs in /dev/shm, where that was too small (ORA-00845, which the log does not show).
    pub dev_shm: Option<Bytes>,
    /// The size of the segment that shmget(2) refused, where the log shows it (ORA-27102, ORA-27125).
    pub refused_segment: Option<Bytes>,
    /// Errors while starting, one line each: `ORA-27137: unable to allocate Large Pages ...`, `use_large_pages = FALSE
    /// is not a supported setting for database on Exadata`. A start that went well has none.
    pub errors: Vec<String>,
}

/// A row of the table since 12.1.
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

    /// The pages in which the SGA landed at that start; `None` if the log does not show it, as before 12.1.
    pub fn landed(&self) -> Option<Landing> {
        self.page_sizes.first()?;
        let huge = self.huge_pages().map(|row| Some((row.allocated?, row.expected?))).collect::<Option<Vec<_>>>()?;
        // A few base pages are used even in huge pages.
        Some(match () {
            () if huge.iter().all(|(allocated, _)| *allocated == Pages(0)) => Landing::Base,
            () if huge.iter().all(|(allocated, expected)| allocated >= expected) => Landing::Hugetlb,
            () => Landing::Mixed,
        })
    }

    /// The huge pages that Oracle expected at that start, by their size. Empty if the log does not show them.
    pub fn expected(&self) -> Vec<(PageSize, Pages)> {
        self.huge_pages().filter_map(|row| Some((row.page_size, row.expected?))).collect()
    }

    /// The row of huge pages of `size`; `None` if the log does not have it.
    pub fn pages_of(&self, size: PageSize) -> Option<&LoggedPageRow> {
        self.huge_pages().find(|row| row.page_size == size)
    }

    /// Whether this is the start of the instance whose PMON is `pmon`, started at `started` (Unix time): `None` if unknown.
    ///
    /// PMON starts seconds after the line, or minutes if a large SGA is prepared first. A log without UTC offset fits
    /// every time zone, so PMON's process id is compared too; inside a container it differs.
    pub fn is_of(&self, pmon: i32, started: i64) -> Option<bool> {
        /// The longest start, and the largest difference of clocks, in seconds.
        const MAX_START_SECONDS: i64 = 3600;
        const MAX_CLOCK_SKEW_SECONDS: i64 = 120;
        /// The largest offset of a time zone from UTC.
        const MAX_UTC_OFFSET_SECONDS: i64 = 14 * 3600;
        let at = self.at.as_ref()?;
        if let Some(unix) = at.unix() {
            return Some((unix - MAX_CLOCK_SKEW_SECONDS..=unix + MAX_START_SECONDS).contains(&started));
        }
        let ahead = started.saturating_sub(at.local);
        let possible = (-MAX_UTC_OFFSET_SECONDS - MAX_CLOCK_SKEW_SECONDS..=MAX_UTC_OFFSET_SECONDS + MAX_START_SECONDS)
            .contains(&ahead);
        match (possible, self.pmon == Some(pmon)) {
            (false, _) => Some(false),
            (true, true) => Some(true),
            (true, false) => None,
        }
    }
}
