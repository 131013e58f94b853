//! What the alert logs of an Oracle instance remember: its starts, also from before this program came, and their pages.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hugepage_assess::history::lost_pages;
use hugepage_assess::model::{CurrentStart, HugePages, Landing, Lost, PageKind};
use hugepage_kernel::stranger::limit;
use hugepage_kernel::{Bytes, InstanceFiles, Notes, PageSize};
use serde::{Deserialize, Serialize};

use crate::readers::{LastStart, alert_log, locate};
use crate::running::RunningOracle;

/// The largest number of starts of one instance that are read.
pub const MAX_STARTS: usize = 200;
/// The largest number of rotated logs of one instance that are read.
const MAX_FILES: usize = 100;

/// A start in an alert log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedStart {
    /// What the log shows of it.
    pub start: LastStart,
    /// The kind of pages that the SGA got; [`Landing::Unknown`] where the log does not show it, or the start failed.
    pub got: PageKind,
    /// The bytes in huge pages; `None` if unknown.
    pub in_huge_pages: Option<Bytes>,
    /// Whether it ended with an error before PMON ran.
    pub failed: bool,
    /// What it lost against the last start before it whose pages are known; `None` if nothing.
    pub lost: Option<Lost>,
    /// The number, in the same list, of the first start of those that got this kind of pages without an interruption.
    pub since: usize,
}

impl RememberedStart {
    /// Seconds since 1970 UTC; `None` for logs up to 12.1, which do not show the zone.
    pub fn at(&self) -> Option<SystemTime> {
        let unix = u64::try_from(self.start.at.as_ref()?.unix()?).ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(unix))
    }

    fn new(start: LastStart) -> Self {
        let failed = start.pmon.is_none() && !start.errors.is_empty();
        let rows = start.huge_pages().map(|row| Some((row.page_size, row.page_size.times(row.allocated?))));
        let rows: Option<Vec<(PageSize, Bytes)>> = rows.collect::<Option<_>>().filter(|_| !start.page_sizes.is_empty());
        let base = start.page_sizes.iter().find(|row| row.is_base).map(|row| row.page_size);
        // Of several sizes the one with the most memory.
        let largest = rows.iter().flatten().filter(|(_, size)| *size > Bytes(0)).max_by_key(|(_, size)| *size);
        let (landing, size) = match start.landed() {
            _ if failed => (Landing::Unknown, None),
            Some(Landing::Base) => (Landing::Base, base),
            Some(landing) => (landing, largest.map(|(size, _)| *size)),
            None if start.parameters.memory_target().is_some() => (Landing::Base, base),
            None => (Landing::Unknown, None),
        };
        let in_huge_pages =
            rows.filter(|_| !failed).map(|rows| rows.iter().fold(Bytes(0), |sum, (_, size)| sum.saturating_add(*size)));
        Self { start, got: PageKind { landing, size }, in_huge_pages, failed, lost: None, since: 0 }
    }

    fn is_by_choice(&self) -> bool {
        let of_parameters = self.start.parameters.get("use_large_pages").or(self.start.use_large_pages.as_deref());
        of_parameters.is_some_and(|value| value.eq_ignore_ascii_case("FALSE"))
    }
}

impl RunningOracle {
    /// What the current start of a running instance lost against the one before it, as its alert logs show it, which are asked for
    /// their `starts` where it may be something; `None` if nothing, or if they do not show it.
    pub fn lost<'a>(
        &self,
        current: &CurrentStart<'_>,
        starts: impl FnOnce() -> Option<&'a [RememberedStart]>,
    ) -> Option<Lost> {
        let segment = current.segment?;
        let is = PageKind { landing: segment.landing, size: segment.page_size };
        // Most instances are not read further.
        if !matches!(is.landing, Landing::Mixed | Landing::Base) || current.requested.huge_pages == HugePages::Off {
            return None;
        }
        let current = self.last_start.as_ref()?.at.as_ref()?.local;
        let is_before = |one: &&RememberedStart| one.start.at.as_ref().is_some_and(|at| at.local < current);
        let mut before = starts()?.iter().rev().filter(is_before);
        let was = before.find(|one| one.got.landing != Landing::Unknown)?.got;
        lost_pages(was, is)
    }
}

/// The starts in the log at `log` and in its rotated files; of each file the last [`MAX_STARTS`].
pub fn starts_in(files: &InstanceFiles, log: &str, notes: &mut Notes) -> Vec<RememberedStart> {
    let (mut left, mut starts) = (limit::ALERT_HISTORY, Vec::new());
    for path in [log.to_owned()].into_iter().chain(locate::rotated(files, log, MAX_FILES)) {
        let found = files.search_log(&path, &mut left, |file, left| alert_log::starts_in(file, MAX_STARTS, left));
        starts.extend(notes.keep(found).unwrap_or_default());
    }
    if left == 0 {
        notes.add(format!(
            "of the alert logs beside \"{log}\" only the last {} were searched",
            Bytes(limit::ALERT_HISTORY)
        ));
    }
    remembered(starts)
}

/// Orders starts by time, and compares each with those before it. Starts without a time or a beginning are dropped.
pub fn remembered(mut starts: Vec<LastStart>) -> Vec<RememberedStart> {
    starts.retain(|start| start.at.is_some() && start.mode.is_some());
    starts.sort_by_key(|start| start.at.as_ref().map_or(0, |at| at.local));
    let surplus = starts.len().saturating_sub(MAX_STARTS);
    let mut all: Vec<_> = starts.into_iter().skip(surplus).map(RememberedStart::new).collect();
    let mut known: Option<(PageKind, usize)> = None;
    for (at, one) in all.iter_mut().enumerate() {
        one.since = known.filter(|(was, _)| *was == one.got).map_or(at, |(_, since)| since);
        one.lost = known.filter(|_| !one.is_by_choice()).and_then(|(was, _)| lost_pages(was, one.got));
        known = if one.got.landing == Landing::Unknown { known } else { Some((one.got, one.since)) };
    }
    all
}
