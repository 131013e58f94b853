//! The page tables that the processes of a server have for shared memory in base pages.
//!
//! The 8 bytes for each shared page are too few: a page that is touched alone has a whole table of 4 kB for its 2 MB. But what
//! a process has for everything else was counted, for one of each kind. The rest of its page tables is for shared memory.

use hugepage_assess::assessment::page_tables::{at_least, at_most, table};
use hugepage_kernel::proc::process::ProcessStatus;
use hugepage_kernel::{Bytes, PageSize};

use crate::model::{CountedProcess, FaultSample, PrivateTables};

/// The page tables of a server for shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedTables {
    /// Page tables of all processes.
    pub total: Bytes,
    /// Page tables of the median session; `None` without sessions.
    pub of_session: Option<Bytes>,
    /// How many processes have any.
    pub processes: u64,
    /// Whether the page tables for everything else are unknown, so that these are a lower bound.
    pub is_lower_bound: bool,
}

impl SharedTables {
    /// The page tables of the server with `sample`, whose smallest process has page tables of `min`; `None` if unknown.
    pub fn count(
        sample: &FaultSample,
        sessions: &[i32],
        private: &PrivateTables,
        min: Bytes,
        segment: Bytes,
        base: PageSize,
    ) -> Option<Self> {
        let mut sum = Self { total: Bytes(0), of_session: None, processes: 0, is_lower_bound: false };
        let mut of_sessions = Vec::new();
        for process in sample.processes.iter().filter(|process| process.status.page_tables.is_some()) {
            let is_session = sessions.contains(&process.pid);
            let like = if is_session { private.of_session.as_ref() } else { private.of_other.as_ref() };
            let least = at_least(&process.status, min, base)?;
            let shared = like.map_or(Some(least), |like| rest(&process.status, like, least, segment, base))?;
            sum.total = sum.total.saturating_add(shared);
            if is_session {
                of_sessions.push(shared);
            }
            if process.status.rss_shmem.is_some_and(|size| size.0 > 0) {
                sum.processes += 1;
                sum.is_lower_bound |= like.is_none();
            }
        }
        of_sessions.sort_unstable();
        sum.of_session = of_sessions.get(of_sessions.len() / 2).copied();
        Some(sum)
    }
}

/// What a process has besides its private page tables, within what its shared pages allow. `like` is one of its kind.
fn rest(status: &ProcessStatus, like: &CountedProcess, least: Bytes, segment: Bytes, base: PageSize) -> Option<Bytes> {
    // Memory that it has more than the other, or less, fills its tables.
    let other_memory = |status: &ProcessStatus| {
        table(status.rss_anon.unwrap_or_default().saturating_add(status.rss_file.unwrap_or_default()), base)
    };
    let private = like.private.saturating_add(other_memory(status)).saturating_sub(other_memory(&like.status));
    let most = at_most(base.pages_to_hold(status.rss_shmem?), segment, base);
    Some(status.page_tables?.saturating_sub(private).min(most).max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessSample;
    use hugepage_kernel::proc::process::ProcessStat;

    const KB: u64 = 1 << 10;
    const MIN: Bytes = Bytes(140 * KB);

    fn status(page_tables_kb: u64, shared_kb: u64, other_kb: u64) -> ProcessStatus {
        ProcessStatus {
            page_tables: Some(Bytes(page_tables_kb * KB)),
            rss_shmem: Some(Bytes(shared_kb * KB)),
            rss_anon: Some(Bytes(other_kb / 2 * KB)),
            rss_file: Some(Bytes(other_kb / 2 * KB)),
            ..ProcessStatus::default()
        }
    }

    fn counted(status: ProcessStatus, private_kb: u64) -> CountedProcess {
        CountedProcess { status, private: Bytes(private_kb * KB) }
    }

    fn tables(
        private: PrivateTables,
        sessions: &[ProcessStatus],
        others: &[ProcessStatus],
        segment: u64,
    ) -> Option<SharedTables> {
        let process =
            |(pid, status): (i32, &ProcessStatus)| ProcessSample { pid, stat: ProcessStat::default(), status: *status };
        let processes = (1..).zip(sessions.iter().chain(others)).map(process).collect();
        let sample = FaultSample { processes, faults_of_ended: 0 };
        let pids: Vec<i32> = (1..).zip(sessions).map(|(pid, _)| pid).collect();
        SharedTables::count(&sample, &pids, &private, MIN, Bytes(segment), PageSize::from_kib(4).unwrap())
    }

    /// Processes of a server with 16 MB of shared buffers: a session, the checkpointer and a launcher. By their pagemap they
    /// had 9, 7 and 6 tables for shared memory. The launcher had two tables more than the checkpointer for its own memory.
    #[test]
    fn the_rest_is_for_shared_memory() {
        let (session, checkpointer, launcher) =
            (status(156, 3400, 10_320), status(140, 2152, 7932), status(144, 720, 8428));
        let private =
            PrivateTables { of_session: Some(counted(session, 120)), of_other: Some(counted(checkpointer, 112)) };
        let found = tables(private, &[session], &[checkpointer, launcher], 20 << 20).unwrap();
        let of_launcher = (144 - 112) * KB - (8428 - 7932) * KB / 512;
        let expected = SharedTables {
            total: Bytes(9 * 4 * KB + 7 * 4 * KB + of_launcher),
            of_session: Some(Bytes(9 * 4 * KB)),
            processes: 3,
            is_lower_bound: false,
        };
        assert_eq!(found, expected);
        // Without these, at most what exceeds the smallest process, and what the pages fill.
        let least = tables(PrivateTables::default(), &[session], &[checkpointer, launcher], 20 << 20).unwrap();
        assert_eq!((least.total, least.is_lower_bound), (Bytes(3400 * KB / 512 + 720 * KB / 512), true));
        // A server whose sessions have touched nothing yet needs no session to compare with.
        let of_other = PrivateTables { of_session: None, ..private };
        assert!(!tables(of_other, &[status(140, 0, 9000)], &[launcher], 20 << 20).unwrap().is_lower_bound);
    }

    #[test]
    fn no_more_than_the_pages_allow() {
        let like = counted(status(150, 100, 10_000), 120);
        let private = PrivateTables { of_session: Some(like), of_other: None };
        let total = |status, segment| tables(private, &[status], &[], segment).unwrap().total.0 / KB;
        for (own_kb, shared_kb, other_kb, segment, expected_kb, why) in [
            (8200, 2 << 20, 10_000, 4 << 30, 8080, "all the rest"),
            (8200, 2 << 20, 10_000 + (1 << 20), 4 << 30, 8080 - 2048, "its own memory has grown by 1 GB"),
            (8200, 400, 10_000, 4 << 30, (100 + 5) * 4, "each of 100 pages has a table, and 5 map these"),
            (8200, 8 << 10, 10_000, 16 << 20, (9 + 2) * 4, "a segment of 16 MB, which need not be aligned"),
            (8200, 0, 10_000, 4 << 30, 0, "it has touched nothing"),
            (300, 1 << 20, 900_000, 4 << 30, 160, "it exceeds the smallest process by less than its pages fill"),
            (100, 1 << 20, 10_000, 4 << 30, 0, "it has less than the one that was counted"),
        ] {
            assert_eq!(total(status(own_kb, shared_kb, other_kb), segment), expected_kb, "{why}");
        }
    }

    #[test]
    fn unknown_is_not_zero() {
        let old_kernel = ProcessStatus { page_tables: Some(MIN), ..ProcessStatus::default() };
        assert_eq!(tables(PrivateTables::default(), &[old_kernel], &[], 1 << 30), None);
        let nothing = tables(PrivateTables::default(), &[], &[], 1 << 30).unwrap();
        assert_eq!((nothing.of_session, nothing.processes), (None, 0));
    }
}
