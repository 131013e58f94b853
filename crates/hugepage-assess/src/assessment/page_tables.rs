//! The cost of 4 kB pages: the page tables now, what would remain of them in huge pages, and their upper limit.
//!
//! A page table has 8 bytes for each page that it maps, and every process has tables of its own. So a process that has touched a whole
//! segment of S bytes on pages of P bytes has S / P * 8 bytes of tables for it: 2 MB per GB on 4 kB pages, 4 kB per GB on 2 MB pages.
//!
//! Processes share the tables of a hugetlb mapping of 2 MB pages, one of 4 kB for each aligned 1 GB that the mapping
//! covers (`huge_pmd_share` in mm/hugetlb.c; x86-64, arm64 and riscv). `VmPTE` counts a shared table in every process, so
//! sums over processes are an upper bound there.

use hugepage_facts::PageTables;
use hugepage_kernel::proc::process::ProcessStatus;
use hugepage_kernel::{Bytes, PageSize};

const ENTRY: u64 = 8;
/// A table of the level whose entries map 2 MB, and the range that it maps.
const PMD_TABLE: u64 = 4 << 10;
const PMD_RANGE: u64 = 1 << 30;
/// Whether kernels of this machine share them (`CONFIG_ARCH_WANT_HUGE_PMD_SHARE`).
const SHARES_PMD_TABLES: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
));

/// Adds up the processes whose page tables are known.
pub fn sum<'a>(
    statuses: impl Iterator<Item = &'a ProcessStatus> + Clone,
    base: PageSize,
) -> PageTables {
    let known = statuses.filter(|status| status.page_tables.is_some());
    let tables = || known.clone().filter_map(|status| status.page_tables);
    let Some(min) = tables().min() else {
        return PageTables::default();
    };
    // Of each process huge pages free as many as its shared pages fill, but the page tables of private memory stay.
    let freed = |status: &ProcessStatus| {
        Some(table(status.rss_shmem?, base).min(status.page_tables?.saturating_sub(min)))
    };
    let mut parts = known.clone().map(freed);
    PageTables {
        processes: tables().map(|_| 1).sum(),
        total: Some(tables().fold(Bytes(0), Bytes::saturating_add)),
        max: tables().max(),
        min: Some(min),
        of_shared_memory: parts.try_fold(Bytes(0), |sum, part| Some(sum.saturating_add(part?))),
    }
}

/// What would remain with huge pages.
pub fn on_huge_pages(now: &PageTables) -> Option<Bytes> {
    Some(now.total?.saturating_sub(now.of_shared_memory?))
}

/// The size if `connections` backends had touched the whole segment on pages of `page_size`.
pub fn at(
    now: &PageTables,
    connections: u64,
    segment: Bytes,
    page_size: PageSize,
) -> Option<Bytes> {
    let own = Bytes(now.min?.0.saturating_mul(connections));
    Some(own.saturating_add(tables(connections, segment, page_size)))
}

/// The page tables of `processes` that have each touched all of a segment. An upper bound: how many aligned ranges of 1 GB
/// the segment covers depends on its address, and the fewest are counted.
pub fn tables(processes: u64, segment: Bytes, page_size: PageSize) -> Bytes {
    let is_shared = SHARES_PMD_TABLES
        && PageSize::base().bytes().0 == PMD_TABLE
        && page_size.bytes().0 == PMD_RANGE / (PMD_TABLE / ENTRY);
    let ranges = (segment.0 / PMD_RANGE).saturating_sub(1);
    if !is_shared || ranges == 0 {
        return Bytes(table(segment, page_size).0.saturating_mul(processes));
    }
    // Both ends of the segment lie in ranges that it does not fill.
    Bytes(
        (2 * PMD_TABLE)
            .saturating_mul(processes)
            .saturating_add(ranges.saturating_mul(PMD_TABLE)),
    )
}

/// The page table that maps `size` on pages of `page_size`, all of it touched.
fn table(size: Bytes, page_size: PageSize) -> Bytes {
    Bytes(page_size.pages_to_hold(size).0.saturating_mul(ENTRY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1 << 10;
    const GB: u64 = 1 << 30;

    fn process(page_tables_kb: u64, rss_shmem: u64) -> ProcessStatus {
        ProcessStatus {
            page_tables: Some(Bytes(page_tables_kb * KB)),
            rss_shmem: Some(Bytes(rss_shmem)),
            ..ProcessStatus::default()
        }
    }

    fn base() -> PageSize {
        PageSize::from_kib(4).unwrap()
    }

    /// 1024 processes that share 1 GB need 2 GB of tables with 8-byte entries (the seed's Sequent had 4-byte ones).
    #[test]
    fn a_table_takes_eight_bytes_a_page() {
        assert_eq!(table(Bytes(GB), base()).0 * 1024, 2 * GB);
        assert_eq!(table(Bytes(10 * GB), base()), Bytes(20 << 20));
        assert_eq!(
            table(Bytes(10 * GB), PageSize::from_kib(2048).unwrap()),
            Bytes(40 * KB)
        );
        assert_eq!(
            table(Bytes(u64::MAX), PageSize::new(1).unwrap()),
            Bytes(u64::MAX)
        );
    }

    /// 60 processes on 4 GB: the host was seen to have 296 kB, where tables of their own would take 960 kB.
    #[test]
    fn processes_share_the_tables_of_hugetlb_pages() {
        let huge = PageSize::from_kib(2048).unwrap();
        assert_eq!(
            tables(60, Bytes(4 * GB), huge),
            Bytes((60 * 8 + 3 * 4) * KB)
        );
        assert_eq!(
            tables(1000, Bytes(64 * GB), huge),
            Bytes((8000 + 63 * 4) * KB)
        );
        // Below 2 GB it need not cover an aligned range.
        assert_eq!(tables(60, Bytes(2 * GB - 1), huge), Bytes(60 * 8 * KB));
        assert_eq!(tables(60, Bytes(4 * GB), base()), Bytes(60 * 8 * KB * KB));
        assert_eq!(
            tables(60, Bytes(4 * GB), PageSize::from_kib(1 << 20).unwrap()),
            Bytes(60 * 4 * 8)
        );
        assert_eq!(tables(u64::MAX, Bytes(u64::MAX), huge), Bytes(u64::MAX));
    }

    #[test]
    fn what_remains_is_never_below_the_smallest_process() {
        let processes = [
            process(100, 0),
            process(8608, 4_300 << 20),
            process(300, GB),
        ];
        let sum = super::sum(processes.iter(), base());
        assert_eq!((sum.processes, sum.total), (3, Some(Bytes(9008 * KB))));
        assert_eq!(
            (sum.max, sum.min),
            (Some(Bytes(8608 * KB)), Some(Bytes(100 * KB)))
        );
        // 8608 kB less the 8600 kB of 4300 MB would leave 8 kB, which no process has: 100 kB stay. The third keeps 100.
        assert_eq!(on_huge_pages(&sum), Some(Bytes(300 * KB)));
        assert_eq!(
            at(&sum, 500, Bytes(10 * GB), base()),
            Some(Bytes(500 * (100 * KB + (20 << 20))))
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        let nothing = super::sum([].iter(), base());
        assert_eq!(
            (
                nothing.total,
                on_huge_pages(&nothing),
                at(&nothing, 1, Bytes(1), base())
            ),
            (None, None, None)
        );
        let old_kernel = ProcessStatus {
            page_tables: Some(Bytes(KB)),
            ..ProcessStatus::default()
        };
        let sum = super::sum([old_kernel].iter(), base());
        assert_eq!((sum.total, on_huge_pages(&sum)), (Some(Bytes(KB)), None));
    }
}
