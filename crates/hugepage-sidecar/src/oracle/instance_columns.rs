//! Definition of the files about instances: their state, what to do, their segments and starts.

use hugepage_host::Instance;
use hugepage_host::host_advice::HostRecommendation;
use hugepage_kernel::Bytes;
use hugepage_kernel::proc::rlimit::Rlimit;
use hugepage_oracle::log_history::RememberedStart;
use hugepage_oracle::readers::LastStart;
use hugepage_oracle::readers::sysvipc::SysvSegment;

use crate::oracle::record_line::seconds;
use crate::oracle::schema::data_file;

data_file! {
    /// An instance: one record per Oracle instance, running or listed in oratab, and per running PostgreSQL server.
    INSTANCE = "instance", instance_record() {
        /// Kind of instance: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.
        kind: Text(10),
        /// ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path).
        sid: Text(64),
        /// ok (as configured, also after a restart), notice, warning or critical.
        verdict: Text(8),
        /// The state in one sentence.
        message: Prose(300),
        /// What to do, in one sentence; NULL if nothing. If it does not fit, a sentence on where it is.
        hint: Instruction(300),
        /// Whether the whole SGA (PostgreSQL: shared memory) is in huge pages; NULL if unknown.
        sga_in_huge_pages: Flag,
        /// hugetlb (all in huge pages), mixed, thp, partial thp, base, or unknown.
        landed_in: Text(11),
        /// Name of the mapping of the largest segment; NULL if unknown.
        mapping: Text(32),
        /// Page size of the SGA in bytes; of a mixed SGA the huge page size; NULL if unknown.
        page_size: Bytes,
        /// Why the SGA is not in huge pages: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit,
        /// shm_group, shm_limit, memory_target, page_size_unsupported, sysv_shared_memory, node_limit or unknown;
        /// NULL if it is as configured.
        cause: Text(24),
        /// Size of the SGA (all shared memory of the instance) in bytes; NULL if unknown.
        shared_memory: Bytes,
        /// Part of the SGA in huge pages, in bytes; NULL if unknown.
        huge_page_bytes: Bytes,
        /// Part of the SGA in base pages, in bytes; NULL if unknown.
        base_page_bytes: Bytes,
        /// Parameter use_large_pages (PostgreSQL: huge_pages), as far as visible from outside; NULL if unknown.
        use_large_pages: Text(10),
        /// Huge page size that the instance uses, in bytes; NULL if unknown.
        huge_page_size: Bytes,
        /// Max locked memory of the running instance (memlock), in bytes; NULL if unknown or unlimited.
        memlock: Bytes,
        /// Whether memlock is unlimited; NULL if unknown.
        memlock_unlimited: Flag,
        /// Huge pages that the SGA needs; NULL if unknown.
        pages_needed: Pages,
        /// Needed pages that are unavailable now; 0 if the whole SGA is in huge pages; NULL if unknown.
        pages_missing: Pages,
        /// Pages in the pool of huge_page_size; NULL if unknown, also in the next four columns.
        nr_hugepages: Pages,
        /// Free pages of that pool, including reserved pages.
        free_hugepages: Pages,
        /// Free pages of that pool that are reserved.
        resv_hugepages: Pages,
        /// Surplus pages of that pool.
        surplus_hugepages: Pages,
        /// Free pages of that pool that are not reserved.
        available_hugepages: Pages,
        /// PageTables of the host, in bytes; NULL if unknown.
        page_tables_host: Bytes,
        /// Transparent huge pages: always, madvise or never; NULL if unknown.
        transparent_hugepage: Text(8),
        /// Expected result of the next start: hugetlb, mixed, base, fails or unknown.
        restart_outlook: Text(8),
        /// Recommended pool for all instances, in pages of huge_page_size; NULL if unknown.
        recommended_nr_hugepages: Pages,
        /// What could not be read and why, separated by semicolons; NULL if everything was read.
        notes: Prose(300),
        /// Process ID of PMON (PostgreSQL: postmaster); NULL if unknown.
        pid: Count,
        /// ORACLE_HOME (PostgreSQL: data directory); NULL if unknown.
        home: Text(160),
        /// When the instance started, UTC; NULL if unknown.
        started_utc: UtcTime,
        /// Number of processes of the instance; NULL if unknown.
        processes: Count,
        /// Page tables of its processes in bytes; NULL if unknown.
        page_tables_total: Bytes,
        /// Sources of landed_in; NULL if it is unknown.
        evidence: Prose(100),
        /// Whether MEMORY_TARGET is set (AMM), which excludes huge pages; NULL for a PostgreSQL server.
        memory_target: Flag,
        /// Version from the alert log or PG_VERSION; NULL if unknown.
        version: Text(20),
        /// Whether the last start lost huge pages, which are still lost; N if neither a history of the server or of `watch` nor the alert log shows it.
        regression: Flag,
        /// When that start was first observed, UTC; NULL if there is no regression.
        regression_utc: UtcTime,
        /// What was lost, such as: was in huge pages of 2 MB, is in 4 kB pages; NULL if there is no regression.
        regression_detail: Prose(120),
        /// running; stopped (Oracle, listed in oratab); failed (the same, and its last start ended with an error about memory).
        state: Text(8),
        /// Whether oratab has the instance start at boot; NULL if it is running or a PostgreSQL server.
        starts_at_boot: Flag,
        /// AVAILABLE_PAGES of huge_page_size in the alert log of the last start (since 12.1; 11.2: unused pages plus its own); NULL if unknown.
        last_start_available: Pages,
        /// EXPECTED_PAGES of that start; NULL if unknown.
        last_start_expected: Pages,
        /// ALLOCATED_PAGES of that start; NULL if unknown.
        last_start_allocated: Pages,
        /// ERROR(s) of that table and errors of that start, separated by semicolons; NULL if there are none.
        last_start_errors: Prose(200),
        /// Name of the host as the instance sees it, if it is in a container with another name and the record has room for it.
        instance_host: Command(64),
    }
}

data_file! {
    /// A recommendation: one record per setting, for one instance or for the host.
    FINDING = "finding", finding_record(priority: u64, one: &HostRecommendation, instance: Option<&Instance>) {
        /// Priority; 1 is the most urgent.
        priority: Count = priority,
        /// Kind of the instance, as in hp_instance.dat; NULL for the host.
        kind: Text(10) = instance.map(|instance| instance.id.kind()),
        /// SID of the instance, as in hp_instance.dat; NULL for the host.
        sid: Text(64) = one.instance,
        /// Severity: ok, notice, warning or critical.
        severity: Text(8),
        /// Area of the setting: oracle, postgresql, kernel, boot, limits or cgroup.
        area: Text(12),
        /// Name of the setting, as in the file or command that sets it.
        setting: Text(100),
        /// Current value; NULL if unknown.
        current_value: Text(64) = one.recommendation.current,
        /// Recommended value; NULL if no possible value suffices.
        recommended: Text(64),
        /// The complete command; NULL if there is none, or if it does not fit: hugepage-sidecar status has it.
        command: Command(250),
        /// When the change takes effect: now, server restart or reboot.
        takes_effect: Text(16),
        /// Memory that the change frees, in bytes; NULL if unknown or none.
        saving: Bytes,
        /// The reason in one sentence.
        reason: Prose(400),
        /// Name of the host as the instance sees it, as in hp_instance.dat.
        instance_host: Command(64) = instance.and_then(|instance| instance.id.place.host_name.as_ref()),
    }
}

data_file! {
    /// A segment of the SGA of a running Oracle instance: one record per segment, one for all files of Automatic Memory Management.
    SEGMENT = "segment", segment_record(name: &str, size: Bytes, shmid: Option<u64>, known: Option<&SysvSegment>) {
        /// Kind of the instance, as in hp_instance.dat.
        kind: Text(10),
        /// SID of the instance, as in hp_instance.dat.
        sid: Text(64),
        /// Process ID of its PMON.
        pid: Count,
        /// Name of the mapping, such as SYSV009b2220.
        mapping: Text(64) = name,
        /// shmid of a System V segment; NULL for files.
        shmid: Count = shmid,
        /// Its key, as ipcs prints it: 0x009b2220; NULL for files, and if it is not in this namespace.
        shm_key: Text(10) = known.map(|segment| format!("0x{:08x}", segment.key)),
        /// Mapped size in bytes.
        segment_size: Bytes = size,
        /// Size as requested from the kernel, not rounded up to pages; NULL for files, and if it is not in this namespace.
        requested_size: Bytes = known.map(|segment| segment.size),
        /// Page size in bytes; NULL if unknown.
        page_size: Bytes,
        /// hugetlb, base or unknown.
        landed_in: Text(11),
        /// How many times it is attached now; NULL for files, and if it is not in this namespace.
        attached: Count = known.map(|segment| segment.attached),
        /// Name of the host as the instance sees it, as in hp_instance.dat.
        instance_host: Command(64),
    }
}

data_file! {
    /// A start of an Oracle instance in its alert log, log.xml and their rotated files: one record per start, at most 50 per instance.
    START = "start", start_record(one: &RememberedStart, first: Option<&RememberedStart>, is_current: bool) where {
        let start = &one.start;
        let parameters = &start.parameters;
        let size = one.got.size.filter(|size| start.pages_of(*size).is_some());
        let size = size.or_else(|| start.expected().first().map(|(size, _)| *size));
        let pages = size.and_then(|size| start.pages_of(size)).unwrap_or_default();
        let time_in_log = |one: &RememberedStart| one.start.at.as_ref().map(|at| at.text.clone());
    } {
        /// Kind of the instance, as in hp_instance.dat.
        kind: Text(10),
        /// SID of the instance, as in hp_instance.dat.
        sid: Text(64),
        /// ORACLE_HOME of the instance.
        home: Text(160),
        /// When the instance started, UTC; NULL if the log does not show the time zone (up to 12.1 the text does not).
        started_utc: UtcTime = one.at().and_then(seconds),
        /// The same as the log has it.
        started_in_log: Text(40) = time_in_log(one),
        /// Whether it is the start of what runs now.
        is_current: Flag = is_current,
        /// hugetlb (all in huge pages), mixed, base, or unknown: what the log shows of the SGA.
        landed_in: Text(11) = one.got.landing,
        /// Page size of the SGA in bytes; of a mixed SGA the huge page size; NULL if unknown.
        page_size: Bytes = one.got.size,
        /// Part of the SGA in huge pages, in bytes; NULL if unknown.
        huge_page_bytes: Bytes = one.in_huge_pages,
        /// The first of the starts without interruption that landed in the same pages, as the log has its time.
        landed_since: Text(40) = first.and_then(time_in_log),
        /// Whether the start lost huge pages against the last one before it whose pages are known.
        regression: Flag = one.lost.is_some(),
        /// What was lost, such as: was in huge pages of 2 MB, is in 4 kB pages; NULL if nothing.
        regression_detail: Prose(120) = one.lost.map(|lost| lost.to_string()),
        /// Whether the start failed.
        failed: Flag = one.failed,
        /// Version from the log; NULL if unknown.
        version: Text(20) = start.version,
        /// use_large_pages of that start; NULL if the log does not show it.
        use_large_pages: Text(10) = start.use_large_pages,
        /// SGA_MAX_SIZE or SGA_TARGET of that start, the larger one; NULL if the log does not show it, also in the next three columns.
        sga_max_size: Bytes = parameters.sga_max_size(),
        /// MEMORY_TARGET of that start.
        memory_target: Bytes = parameters.size("memory_target"),
        /// PGA_AGGREGATE_TARGET of that start.
        pga_aggregate_target: Bytes = parameters.size("pga_aggregate_target"),
        /// PGA_AGGREGATE_LIMIT of that start.
        pga_aggregate_limit: Bytes = parameters.size("pga_aggregate_limit"),
        /// AVAILABLE_PAGES of page_size, or of the only huge page size; NULL if the log does not show it, also in the next two columns.
        available_pages: Pages = pages.available,
        /// EXPECTED_PAGES.
        expected_pages: Pages = pages.expected,
        /// ALLOCATED_PAGES.
        allocated_pages: Pages = pages.allocated,
        /// Memlock limit in the log, in bytes; NULL if unknown or unlimited.
        memlock: Bytes = start.memlock.and_then(Rlimit::bytes),
        /// ERROR(s) of the table and errors of that start, separated by semicolons; NULL if there are none.
        errors: Prose(200) = logged_errors(start),
        /// Name of the host as the instance sees it, as in hp_instance.dat.
        instance_host: Command(64),
    }
}

/// The errors of a start and of its table.
pub fn logged_errors(start: &LastStart) -> Vec<&String> {
    start.page_sizes.iter().filter_map(|row| row.error.as_ref()).chain(&start.errors).collect()
}
