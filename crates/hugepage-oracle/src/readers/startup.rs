//! The facts that an alert log has about one start of an instance.

use hugepage_assess::model::LockLimit;
use hugepage_facts::{Landing, LastStart, LoggedPageRow};
use hugepage_kernel::{Bytes, Pages, Rlimit};

/// What the line of an instance that ends has.
pub(super) const END: &str = "terminating the instance";

/// The pages in which the SGA landed at that start; `None` if the log does not show it.
pub fn landed(start: &LastStart) -> Option<Landing> {
    start.page_sizes.first()?;
    let mut allocated = start.huge_pages().map(|row| row.allocated);
    if allocated.all(|pages| pages == Some(Pages(0))) {
        return Some(Landing::Base);
    }
    let is_complete = |row: &LoggedPageRow| Some(row.allocated? >= row.expected?);
    let rows: Option<Vec<_>> = start.huge_pages().map(is_complete).collect();
    // A few base pages are used even in huge pages.
    Some(if rows?.contains(&false) {
        Landing::Mixed
    } else {
        Landing::Hugetlb
    })
}

/// Whether PMON did not start, or whether the instance ended before it had a database. Without the beginning of a start the errors of a
/// log may be those of an instance that ran.
pub fn failed(start: &LastStart) -> bool {
    let is_end = |error: &String| error.contains(END);
    start.mode.is_some() && (start.pmon.is_none() || start.errors.last().is_some_and(is_end))
}

/// Whether an error is that huge pages, System V memory (ENOSPC) or /dev/shm were missing, or that the kernel refused pages to the
/// owner: what the host may have by now.
pub fn lacked_memory(start: &LastStart) -> bool {
    let is_of_pages = |error: &String| {
        let error = error.to_ascii_lowercase();
        error.contains("large pages") || error.contains("system pages")
    };
    let has = |code| start.has_error(code);
    has(27137)
        || has(27106)
        || has(27125) && matches!(start.os_error, None | Some(1))
        || (has(27125) || has(27102)) && start.os_error == Some(28)
        || start.dev_shm.is_some()
        || start.errors.iter().any(is_of_pages)
}

/// What refused huge pages of `size` bytes in all at that start: it found as many as it expected and got fewer. The memlock limit of the
/// log, if that is too small. `None` if the log shows something else.
pub fn refusal(start: &LastStart, size: Bytes) -> Option<LockLimit> {
    let is_refused = |row: &LoggedPageRow| {
        row.available >= row.expected && row.allocated.is_some() && row.allocated < row.expected
    };
    let wanted = |row: &&LoggedPageRow| row.expected > Some(Pages(0));
    let mut wanted = start.huge_pages().filter(wanted).peekable();
    wanted.peek()?;
    wanted.all(is_refused).then_some(match start.memlock {
        Some(Rlimit::At(limit)) if limit < size => LockLimit::Memlock {
            limit,
            others: Bytes(0),
        },
        _ => LockLimit::Unexplained,
    })
}

/// Whether this is certainly the start of the instance whose PMON is `pmon`, started at `started` (Unix time).
///
/// PMON starts seconds after the line, or minutes if a large SGA is prepared first. A log without UTC offset fits
/// every time zone, so PMON's process id is compared too; inside a container it differs.
pub fn is_of(start: &LastStart, pmon: i32, started: i64) -> bool {
    /// The longest start, and the largest difference of clocks, in seconds.
    const MAX_START_SECONDS: i64 = 3600;
    const MAX_CLOCK_SKEW_SECONDS: i64 = 120;
    /// The largest offset of a time zone from UTC.
    const MAX_UTC_OFFSET_SECONDS: i64 = 14 * 3600;
    let Some(at) = &start.at else {
        return false;
    };
    let (since, offset) = match at.unix() {
        Some(unix) => (unix, 0),
        None if start.pmon == Some(pmon) => (at.local, MAX_UTC_OFFSET_SECONDS),
        None => return false,
    };
    let earliest = -offset - MAX_CLOCK_SKEW_SECONDS;
    (earliest..=offset + MAX_START_SECONDS).contains(&started.saturating_sub(since))
}
