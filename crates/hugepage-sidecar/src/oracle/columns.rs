//! Definition of the files.
//!
//! The records, the header lines, the external tables, types, package, views and comments in Oracle and the tables in
//! docs/oracle-reference.md are derived from these definitions. New columns are only appended to a record: a new table then reads NULL
//! from an old file, and an old table ignores the additional columns of a new file.

use std::time::{Duration, SystemTime};

use hugepage_host::Survey;
use hugepage_host::host_advice::verdict::HostVerdict;
use hugepage_kernel::Root;
use hugepage_kernel::memory::sysctl;
use hugepage_sizing::Sizing;

use crate::oracle::instance_columns::{FINDING, INSTANCE, SEGMENT, START};
use crate::oracle::record_line::seconds;
use crate::oracle::schema::{Column, DataFile, data_file};

/// The version of the format. Another version has other file names, so that no reader confuses them.
pub const FORMAT_VERSION: u64 = 1;

data_file! {
    /// The first columns of every record.
    COMMON = "common", common_record(id: &str, taken_at: SystemTime, host: &str) {
        /// Version of the file format: 1.
        format_version: Count = FORMAT_VERSION,
        /// ID of the snapshot: the same in all files.
        snapshot_id: Text(16) = id,
        /// When the snapshot was taken, UTC.
        snapshot_utc: UtcTime = seconds(taken_at),
        /// Name of the host, from uname(2).
        host_name: Text(64) = host,
    }
}

data_file! {
    /// The host: one record.
    HOST = "host", host_record(root: &Root, survey: &Survey, sizings: &[Sizing], interval: Option<Duration>) where {
        let host = &survey.host;
        let meminfo = host.meminfo.as_ref();
        let default = host.default_page_size();
        let has_instances = !(survey.instances.is_empty() && host.stopped.is_empty());
        let running = |name| sysctl::running(root, name).ok().flatten();
    } {
        /// Number of records in hp_pool.dat.
        pool_count: Count,
        /// Number of records in hp_instance.dat.
        instance_count: Count,
        /// Number of records in hp_finding.dat.
        finding_count: Count,
        /// Seconds until the next snapshot; NULL if this one was taken manually.
        interval_seconds: Count = interval.map(|interval| interval.as_secs().max(1)),
        /// Version of hugepage-sidecar.
        sidecar_version: Text(30) = env!("CARGO_PKG_VERSION"),
        /// Worst verdict of all instances: ok, notice, warning, critical; NULL if there are none.
        verdict: Text(8) = has_instances.then(|| HostVerdict::of_survey(survey, sizings).severity),
        /// MemTotal in bytes; NULL if unknown.
        memory_total: Bytes = meminfo.and_then(|meminfo| meminfo.mem_total),
        /// MemAvailable in bytes; NULL if unknown (before Linux 3.14).
        memory_available: Bytes = meminfo.and_then(|meminfo| meminfo.mem_available),
        /// PageTables in bytes: page tables of all processes; NULL if unknown.
        page_tables_host: Bytes = meminfo.and_then(|meminfo| meminfo.page_tables),
        /// Default huge page size in bytes; NULL if the kernel has none.
        huge_page_size: Bytes = default,
        /// Memory in huge page pools of all sizes, in bytes; NULL if unknown.
        hugetlb: Bytes = meminfo.and_then(|meminfo| meminfo.hugetlb),
        /// Recommended pool of the default size for all instances, in pages; NULL if unknown.
        recommended_nr_hugepages: Pages = default.and_then(|size| Sizing::of_size(sizings, size)?.recommended),
        /// Transparent huge pages: always, madvise or never; NULL if unknown.
        transparent_hugepage: Text(8) = host.transparent_hugepage,
        /// ID of the group that may use huge pages in System V shared memory (vm.hugetlb_shm_group); NULL if unknown.
        hugetlb_shm_group: Count = running("vm.hugetlb_shm_group").and_then(|group| group.parse::<u64>().ok()),
        /// Kernel release, from uname(2); NULL if unknown.
        kernel: Text(64) = running("kernel.osrelease"),
        /// What could not be read and why, separated by semicolons; NULL if everything was read.
        notes: Prose(400) = host.notes,
        /// Number of records in hp_segment.dat; NULL if the sidecar is older than that file.
        segment_count: Count,
        /// Number of records in hp_start.dat; NULL if the sidecar is older than that file.
        start_count: Count,
    }
}

data_file! {
    /// A pool of huge pages: one record per page size, and one per NUMA node.
    POOL = "pool", pool_record() {
        /// Page size in bytes.
        page_size: Bytes,
        /// NUMA node; NULL for the pool of the whole host.
        node: Count,
        /// Whether it is the pool of the default page size.
        is_default: Flag,
        /// Pages in the pool, including surplus pages.
        nr_hugepages: Pages,
        /// Free pages, including reserved pages.
        free_hugepages: Pages,
        /// Free pages that are reserved; NULL for a NUMA node, where the kernel does not count them.
        resv_hugepages: Pages,
        /// Surplus pages; NULL if unknown.
        surplus_hugepages: Pages,
        /// Maximum number of surplus pages; NULL for a NUMA node.
        nr_overcommit_hugepages: Pages,
        /// Free pages that are not reserved; NULL if unknown.
        available_hugepages: Pages,
        /// The cgroup limit with the least free space, as visible to the sidecar, in bytes; NULL if there is none.
        cgroup_limit: Bytes,
        /// Current usage of that limit in bytes; NULL if there is none.
        cgroup_usage: Bytes,
    }
}

/// The files in the order of renaming. hp_host.dat is last, because it has the record counts of the others.
pub static FILES: [&DataFile; 6] = [&POOL, &INSTANCE, &FINDING, &SEGMENT, &START, &HOST];

/// All columns of a file: the common ones, then its own.
pub fn columns(file: &DataFile) -> impl Iterator<Item = &'static Column> + use<> {
    COMMON.own.iter().chain(file.own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::names::object;
    use crate::oracle::record_line::MAX_RECORD_BYTES;

    #[test]
    fn use_legal_and_unique_names() {
        for file in FILES {
            let mut names: Vec<_> = columns(file).map(|column| column.name).collect();
            for name in &names {
                assert!(object(name).is_ok(), "{name}");
            }
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns(file).count(), "{}", file.name);
        }
    }

    /// Only columns that may be shortened can make a record too long.
    #[test]
    fn fit_records_without_shortened_columns() {
        for file in FILES {
            let fixed = columns(file)
                .map(|column| if column.column_type.may_be_shortened() { 1 } else { column.column_type.width() + 1 });
            assert!(fixed.sum::<usize>() <= MAX_RECORD_BYTES, "{}", file.name);
        }
    }

    /// COMMENT ON takes 4000 bytes. A sentence without a period was truncated.
    #[test]
    fn comment_every_column() {
        for column in FILES.into_iter().flat_map(columns) {
            let comment = column.comment;
            assert!(comment.is_ascii() && comment.len() < 1000 && comment.ends_with('.'), "{comment}");
        }
    }
}
