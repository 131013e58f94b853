//! What the four files hold: the one place where it is said.
//!
//! The structs, the header lines, the external tables, types, package, views and comments in Oracle and the tables in
//! docs/oracle.md are made from these definitions. A column is only ever appended, at the end of its record: an old
//! file under a new table then has NULL there, and of a new file under an old table the surplus is not read.

use crate::oracle::schema::{Column, File, Record, record};

/// The version of the format. Another one has other file names, so that no reader mistakes one for the other.
pub const FORMAT_VERSION: u64 = 1;

record! {
    /// What every record begins with.
    Common = "" {
        /// Version of the format of the files: 1.
        format_version: Count,
        /// The snapshot that the record belongs to: the same in all four files of one snapshot.
        snapshot_id: Text(16),
        /// When the snapshot was taken, UTC.
        snapshot_utc: UtcTime,
        /// The host that the snapshot was taken on, as uname(2) has it.
        host_name: Text(64),
    }
}

record! {
    /// The host: one record.
    Host = "hp_host" {
        /// Records of hp_pool.dat in this snapshot.
        pool_count: Count,
        /// Records of hp_instance.dat in this snapshot.
        instance_count: Count,
        /// Records of hp_finding.dat in this snapshot.
        finding_count: Count,
        /// Seconds until the next snapshot is due; NULL if none is, because this one was taken by hand.
        interval_seconds: Count,
        /// Version of the hugepage-sidecar that wrote the files.
        sidecar_version: Text(30),
        /// The gravest verdict of all instances of the host: ok, notice, warning, critical; NULL if there are none.
        verdict: Text(8),
        /// MemTotal in bytes; NULL if unknown.
        memory_total: Bytes,
        /// MemAvailable in bytes; NULL if unknown, as with kernels before 3.14.
        memory_available: Bytes,
        /// PageTables in bytes: what the page tables of all processes take; NULL if unknown.
        page_tables: Bytes,
        /// Default huge page size in bytes; NULL if the kernel has none.
        huge_page_size: Bytes,
        /// Memory in all huge page pools, of every size, in bytes; NULL if unknown.
        hugetlb: Bytes,
        /// The pool of the default size that the host should have, in pages, for all instances together; NULL if unknown.
        recommended_nr_hugepages: Pages,
        /// Transparent huge pages: always, madvise or never; NULL if unknown.
        transparent_hugepage: Text(8),
        /// Group that may have huge pages in System V shared memory without CAP_IPC_LOCK (vm.hugetlb_shm_group), a
        /// number; NULL if unknown.
        hugetlb_shm_group: Count,
        /// Kernel release, as uname(2) has it; NULL if unknown.
        kernel: Text(64),
        /// What could not be read and why, each note behind a semicolon; NULL if all was read.
        notes: Prose(400),
    }
}

record! {
    /// A pool of huge pages: one record for each page size of the host, and one for each NUMA node's part of it.
    Pool = "hp_pool" {
        /// Page size in bytes.
        page_size: Bytes,
        /// NUMA node; NULL for the pool of the whole host.
        node: Count,
        /// Whether it is the pool of the default page size.
        is_default: Flag,
        /// Pages in the pool, surplus pages included.
        nr_hugepages: Pages,
        /// Pages that nobody has touched yet, the reserved ones included.
        free_hugepages: Pages,
        /// Pages of the free ones that are promised to somebody; NULL for a NUMA node, where the kernel does not count them.
        resv_hugepages: Pages,
        /// Pages above what the pool was set to; NULL if unknown.
        surplus_hugepages: Pages,
        /// How many surplus pages the kernel may add; NULL for a NUMA node.
        nr_overcommit_hugepages: Pages,
        /// Free pages that are not promised; NULL if unknown.
        available: Pages,
        /// The cgroup limit with the least room, in bytes, as the sidecar sees it; NULL if there is none.
        cgroup_limit: Bytes,
        /// What counts against that limit now, in bytes; NULL if there is none.
        cgroup_usage: Bytes,
        /// How many more pages the kernel could make of free memory as it lies; NULL if unknown.
        obtainable_now: Pages,
    }
}

record! {
    /// An instance: one record for each Oracle instance and each PostgreSQL server that runs on the host.
    Instance = "hp_instance" {
        /// What it is: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.
        kind: Text(10),
        /// ORACLE_SID of an Oracle instance; the data directory of a PostgreSQL server, cut to 64 (home has all of it).
        sid: Text(64),
        /// ok (as asked, and a restart keeps it), notice, warning or critical.
        verdict: Text(8),
        /// What is so, in one sentence.
        message: Prose(300),
        /// What to do, in one sentence; NULL if there is nothing to do.
        hint: Prose(300),
        /// Whether all of the SGA (of a PostgreSQL server: of shared memory) is in huge pages; NULL if unknown.
        sga_in_huge_pages: Flag,
        /// hugetlb (all in huge pages), mixed, thp, partial thp, base, or unknown.
        landed_in: Text(11),
        /// The kernel's name of the mapping of the largest segment; NULL if it could not be seen.
        mapping: Text(32),
        /// Size of the SGA's pages in bytes; of a mixed one that of the huge ones; NULL if unknown.
        page_size: Bytes,
        /// Why it is not as asked: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit, shm_group,
        /// memory_target, page_size_unsupported, sysv_shared_memory, node_limit, memory_limit or unknown; NULL if it is as asked.
        cause: Text(24),
        /// The SGA: all shared memory of the instance, in bytes; NULL if unknown.
        shared_memory: Bytes,
        /// The part of it in huge pages, in bytes; NULL if unknown.
        huge_page_bytes: Bytes,
        /// The part of it in base pages, in bytes; NULL if unknown.
        base_page_bytes: Bytes,
        /// The parameter use_large_pages (of a PostgreSQL server: huge_pages) as far as it can be told from outside; NULL if
        /// unknown.
        use_large_pages: Text(10),
        /// Huge page size that the instance takes, in bytes; NULL if unknown.
        huge_page_size: Bytes,
        /// Max locked memory of the running instance (memlock), in bytes; NULL if unknown or unlimited.
        memlock: Bytes,
        /// Whether memlock is unlimited; NULL if unknown.
        memlock_unlimited: Flag,
        /// Pages that the SGA needs of the pool; NULL if unknown.
        pages_needed: Pages,
        /// Of these, how many could not be had now; 0 where all of the SGA is in huge pages; NULL if unknown.
        pages_missing: Pages,
        /// Pages of the pool of huge_page_size; NULL if unknown, here and in the next four.
        nr_hugepages: Pages,
        /// Pages of that pool that nobody has touched yet.
        free_hugepages: Pages,
        /// Pages of the free ones that are promised to somebody.
        resv_hugepages: Pages,
        /// Pages above what the pool was set to.
        surplus_hugepages: Pages,
        /// Free pages that are not promised.
        available_hugepages: Pages,
        /// PageTables of the host, in bytes; NULL if unknown.
        page_tables: Bytes,
        /// Transparent huge pages: always, madvise or never; NULL if unknown.
        transparent_hugepage: Text(8),
        /// What the next start would land in: hugetlb, mixed, base, fails or unknown.
        restart_outlook: Text(8),
        /// The pool that the host should have, in pages of huge_page_size, for all instances together; NULL if unknown.
        recommended_nr_hugepages: Pages,
        /// What could not be read and why, each note behind a semicolon; NULL if all was read.
        notes: Prose(300),
        /// Process ID of PMON (of a PostgreSQL server: of the postmaster); NULL if unknown.
        pid: Count,
        /// ORACLE_HOME (of a PostgreSQL server: the data directory); NULL if unknown.
        home: Text(160),
        /// When the instance started, UTC; NULL if unknown.
        started_utc: UtcTime,
        /// Processes of the instance; NULL if unknown.
        processes: Count,
        /// Page tables of the instance's processes, in bytes; NULL if unknown.
        instance_page_tables: Bytes,
        /// How it is known where the SGA landed; NULL if it is not.
        evidence: Prose(100),
        /// Whether MEMORY_TARGET is set (AMM), with which no SGA is in huge pages; NULL for a PostgreSQL server.
        memory_target: Flag,
        /// Version of the software, as the alert log or PG_VERSION has it; NULL if unknown.
        version: Text(20),
        /// Whether the last start lost what the one before had, and it is still lost; N also where `watch` keeps no history.
        regression: Flag,
        /// When the start that lost it was first seen, UTC; NULL if nothing is lost.
        regression_utc: UtcTime,
        /// What was lost: was in huge pages of 2 MB, is in huge pages only in part; NULL if nothing is lost.
        regression_detail: Prose(120),
    }
}

record! {
    /// A recommendation: one record for each thing to set, for one instance or for the whole host.
    Finding = "hp_finding" {
        /// 1 is the first to do.
        priority: Count,
        /// The instance that it is for, as kind in hp_instance.dat; NULL for the whole host.
        kind: Text(10),
        /// The instance that it is for, as sid in hp_instance.dat; NULL for the whole host.
        sid: Text(64),
        /// How grave it is that it is not so yet: ok, notice, warning or critical.
        severity: Text(8),
        /// Whose setting it is: oracle, postgresql, kernel, boot, limits or cgroup.
        area: Text(12),
        /// The name of what to set, as in the file or command that sets it.
        setting: Text(100),
        /// Its value now; NULL if unknown.
        current_value: Text(64),
        /// What to set; NULL where no value that the host can hold would do.
        recommended: Text(64),
        /// The command, whole; NULL if there is none, or if it is too long for its column.
        command: Command(250),
        /// When it takes effect: now, server restart or reboot.
        takes_effect: Text(16),
        /// Memory that it gives back, in bytes; NULL if unknown or none.
        saves: Bytes,
        /// Why, in one sentence.
        reason: Prose(400),
    }
}

/// The files, in the order in which they are renamed into place: the host last, which says how many records the
/// others have.
pub const FILES: [&File; 4] = [&Pool::FILE, &Instance::FILE, &Finding::FILE, &Host::FILE];

/// All columns of a file: the common ones, then its own.
pub fn columns(file: &File) -> impl Iterator<Item = &'static Column> + use<> {
    Common::FILE.own.iter().chain(file.own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::names::Name;
    use crate::oracle::record::LONGEST;

    #[test]
    fn names_are_legal_in_oracle_and_stand_for_one_thing() {
        for file in FILES {
            let mut names: Vec<_> = columns(file).map(|column| column.name).collect();
            for name in &names {
                assert!(Name::new(name).is_ok(), "{name}");
            }
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), columns(file).count(), "{}", file.stem);
        }
    }

    /// What gives way is the only thing that can make a record too long.
    #[test]
    fn records_fit_without_what_gives_way() {
        for file in FILES {
            let fixed = columns(file).map(|column| if column.kind.gives_way() { 1 } else { column.kind.width() + 1 });
            assert!(fixed.sum::<usize>() <= LONGEST, "{}", file.stem);
        }
    }

    /// COMMENT ON takes 4000 bytes, and a sentence without a stop was cut somewhere.
    #[test]
    fn every_column_has_a_comment() {
        for column in FILES.into_iter().flat_map(columns) {
            let comment = column.comment.concat();
            assert!(comment.is_ascii() && comment.len() < 1000 && comment.ends_with('.'), "{comment}");
        }
    }
}
