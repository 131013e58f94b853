//! /proc/PID/status and /proc/PID/stat: the memory of one process, without a walk of its page tables or its mmap lock (proc(5)).

use std::time::Duration;

use memchr::memrchr;

use crate::Bytes;
use crate::fields::{fields, first_number};

/// The unit of times in /proc (`USER_HZ`), independent of the kernel's own clock.
const TICKS_PER_SECOND: u64 = 100;

/// The memory of one process; `None` if this kernel has no such line, or the process no longer has memory of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStatus {
    /// `PPid`: its parent.
    pub parent: Option<i32>,
    /// `VmPTE`: its page tables.
    pub page_tables: Option<Bytes>,
    /// `RssAnon` (since 4.5): resident private memory.
    pub rss_anon: Option<Bytes>,
    /// `RssFile` (since 4.5): resident file pages.
    pub rss_file: Option<Bytes>,
    /// `RssShmem` (since 4.5): resident shared memory in base or transparent huge pages, hugetlb pages not counted.
    pub rss_shmem: Option<Bytes>,
    /// `VmSwap`: its private memory in swap.
    pub swap: Option<Bytes>,
    /// `HugetlbPages` (since 4.4): a positive value proves hugetlb pages; the amount can be far too low, as processes share tables.
    pub hugetlb_pages: Option<Bytes>,
}

impl ProcessStatus {
    /// Parses the text of /proc/PID/status.
    pub fn parse(text: impl AsRef<[u8]>) -> Self {
        let mut status = Self::default();
        let wanted = |start: &[u8; 4]| {
            matches!(start, b"PPid" | b"RssA" | b"RssF" | b"RssS" | b"VmPT" | b"VmSw" | b"Huge" | b"Thre")
        };
        for (name, value) in fields(text.as_ref(), wanted) {
            let into = match name {
                b"PPid" => {
                    status.parent = first_number(value).and_then(|pid| pid.try_into().ok());
                    continue;
                }
                b"VmPTE" => &mut status.page_tables,
                b"RssAnon" => &mut status.rss_anon,
                b"RssFile" => &mut status.rss_file,
                b"RssShmem" => &mut status.rss_shmem,
                b"VmSwap" => &mut status.swap,
                b"HugetlbPages" => &mut status.hugetlb_pages,
                // The memory is before the threads, and masks and counters are behind them.
                b"Threads" => break,
                _ => continue,
            };
            *into = first_number(value).map(Bytes::from_kib);
        }
        status
    }
}

/// What /proc/PID/stat tells of one process (proc(5)), and no other file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// `starttime`: when it started after boot, in hundredths of a second. With the pid it identifies a process.
    pub start_ticks: u64,
}

impl ProcessStat {
    /// Parses the text of /proc/PID/stat; `None` if it has too few fields.
    pub fn parse(text: impl AsRef<[u8]>) -> Option<Self> {
        // The second field, in brackets, may have spaces and brackets itself. The third one follows.
        let text = text.as_ref();
        let mut fields = str::from_utf8(&text[memrchr(b')', text)? + 1..]).ok()?.split_ascii_whitespace();
        Some(Self { start_ticks: fields.nth(19)?.parse().ok()? })
    }

    /// From the boot of the machine to the start of the process, including suspended time.
    pub const fn start_after_boot(&self) -> Duration {
        Duration::from_millis(self.start_ticks.saturating_mul(1000 / TICKS_PER_SECOND))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_has_no_memory() {
        let zombie = ProcessStatus::parse("Name:\tpostgres\nState:\tZ (zombie)\nPPid:\t7\n");
        assert_eq!(zombie, ProcessStatus { parent: Some(7), ..ProcessStatus::default() });
    }

    /// A name may have any bytes, and what is behind the threads is not memory.
    #[test]
    fn memory_is_before_the_threads() {
        let text = b"Name:\tRssAnon: \xff 7\nPPid:\t7\nVmPTE:\t    48 kB\nThreads:\t1\nVmSwap:\t4 kB\n";
        let found = ProcessStatus::parse(text);
        let expected =
            ProcessStatus { page_tables: Some(Bytes(48 << 10)), parent: Some(7), ..ProcessStatus::default() };
        assert_eq!(found, expected);
        assert_eq!(ProcessStatus::parse("VmPTE:\t48 kB").page_tables, Some(Bytes(48 << 10)), "without an end");
        for nothing in ["", " ", " kB", "4x kB", "-4 kB", "18446744073709551616 kB"] {
            assert_eq!(ProcessStatus::parse(format!("VmPTE:{nothing}\n")).page_tables, None, "{nothing}");
        }
        let without_brackets =
            ProcessStat::parse(b"1 (\xff) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21");
        assert_eq!(without_brackets, Some(ProcessStat { start_ticks: 19 }));
    }

    /// The field number of proc(5): starttime is the 22nd.
    #[test]
    fn fields_of_stat() {
        let fields: Vec<_> = (4..=52).map(|number| number.to_string()).collect();
        let text = format!("1 (a) b (c) S {}\n", fields.join(" "));
        assert_eq!(ProcessStat::parse(&text), Some(ProcessStat { start_ticks: 22 }));
        assert_eq!(ProcessStat::parse("1 (a) S 1 2 3\n"), None);
    }
}
