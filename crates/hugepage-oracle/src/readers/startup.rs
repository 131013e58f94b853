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
    /// `(OS id: 14753)` (since 12.1): the process that started it, which is not PMON.
    pub os_pid: Option<i32>,
    /// `PMON started with pid=2, OS id=4352`, in the PID namespace of the instance. `None` if the start did not get there.
    pub pmon: Option<i32>,
    /// `11.2.0.4.0`; where the log has it, with the release update (`19.24.0.0.0`).
    pub version: Option<String>,
    /// The spfile or pfile that was used, in ASM if it begins with `+`.
    pub parameter_file: Option<String>,
    /// `System parameters with non-default values`.
    pub parameters: Parameters,
    /// `Parameter use_large_pages = ONLY` of 11.2's block, or the value that was refused.
    pub use_large_pages: Option<String>,
    /// `Per process system memlock (soft) limit` (since 11.2.0.4).
    pub memlock: Option<Rlimit>,
    /// `Large Pages Information` (11.2.0.2 to 11.2.0.4).
    pub large_pages: Option<LoggedLargePages>,
    /// The table of page sizes (since 12.1), base pages first; empty in older logs.
    pub page_sizes: Vec<LoggedPageRow>,
    /// `Total Shared Global Region size is`, `Total System Global Area size is`: printed only where pages were missing.
    pub sga: Option<Bytes>,
    /// The number of pages that `RECOMMENDATION` or `ACTION` wants unused in addition.
    pub more_pages: Option<Pages>,
    /// The number that it wants unused in total (11.2 with ONLY, where the start failed).
    pub unused_pages: Option<Pages>,
    /// What MEMORY_TARGET needs in /dev/shm, where that was too small (ORA-00845, which the log does not show).
    pub dev_shm: Option<Bytes>,
    /// The size of the segment that shmget(2) refused, where the log shows it (ORA-27102, ORA-27125).
    pub refused_segment: Option<Bytes>,
    /// Errors while starting, one line each: `ORA-27137: unable to allocate Large Pages ...`, `use_large_pages = FALSE
    /// is not a supported setting for database on Exadata`. A start that went well has none.
    pub errors: Vec<String>,
}

/// 11.2's `Large Pages Information`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedLargePages {
    /// The percentage of the SGA, rounded down: 99 for 4000 of 4002 MB.
    pub percent: Option<u64>,
    /// `Large Pages used by this instance`.
    pub used: Option<Pages>,
    /// `Large Pages unused system wide`, after this instance took its own.
    pub unused: Option<Pages>,
    /// `Large Page size`.
    pub page_size: Option<PageSize>,
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

/// The row of one page size, of any release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggedPages {
    /// Pages that were available to the start.
    pub available: Option<Pages>,
    /// Pages that the start expected.
    pub expected: Option<Pages>,
    /// Pages that the start got.
    pub allocated: Option<Pages>,
}

impl LastStart {
    /// The pages in which the SGA landed at that start; `None` if the log does not show it, as before 11.2.0.2.
    pub fn landed(&self) -> Option<Landing> {
        let all = match &self.large_pages {
            Some(pages) if self.page_sizes.is_empty() => {
                if pages.used? == Pages(0) {
                    return Some(Landing::Base);
                }
                pages.percent? >= 100
            }
            _ => {
                self.page_sizes.first()?;
                let huge = self.page_sizes.iter().filter(|row| !row.is_base);
                let huge = huge.map(|row| Some((row.allocated?, row.expected?))).collect::<Option<Vec<_>>>()?;
                if huge.iter().all(|(allocated, _)| *allocated == Pages(0)) {
                    return Some(Landing::Base);
                }
                // A few base pages are used even then.
                huge.iter().all(|(allocated, expected)| allocated >= expected)
            }
        };
        Some(if all { Landing::Hugetlb } else { Landing::Mixed })
    }

    /// The huge pages that Oracle expected at that start, by their size. Empty if the log does not show them.
    pub fn expected(&self) -> Vec<(PageSize, Pages)> {
        if !self.page_sizes.is_empty() {
            let huge = self.page_sizes.iter().filter(|row| !row.is_base);
            return huge.filter_map(|row| Some((row.page_size, row.expected?))).collect();
        }
        let expected = || {
            let pages = self.large_pages.as_ref()?;
            let page_size = pages.page_size?;
            let expected = match (self.unused_pages, self.more_pages, pages.percent) {
                (Some(all), _, _) => all,
                (None, Some(more), _) => pages.used?.saturating_add(more),
                (None, None, Some(100..)) => pages.used?,
                _ => page_size.pages_to_hold(self.sga?),
            };
            Some((page_size, expected))
        };
        expected().into_iter().collect()
    }

    /// The numbers of huge pages of `size`; `None` if the log does not have it. 11.2 shows what is unused after the start.
    pub fn pages_of(&self, size: PageSize) -> Option<LoggedPages> {
        if let Some(row) = self.page_sizes.iter().find(|row| !row.is_base && row.page_size == size) {
            return Some(LoggedPages { available: row.available, expected: row.expected, allocated: row.allocated });
        }
        let pages = self.large_pages.as_ref().filter(|pages| pages.page_size == Some(size))?;
        let expected = self.expected().into_iter().find(|(row, _)| *row == size).map(|(_, pages)| pages);
        let available = match (pages.unused, pages.used) {
            (Some(unused), used) => Some(unused.saturating_add(used.unwrap_or_default())),
            _ => None,
        };
        Some(LoggedPages { available, expected, allocated: pages.used })
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
