-- Complain if the script is sourced in psql.
\echo Use "CREATE EXTENSION pg_hugepages" to load this file. \quit

-- src/library.sql
CREATE FUNCTION hugepage_library_version(needed text DEFAULT NULL) RETURNS text
    STABLE PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_library_version_wrapper';

-- An older library that still runs is reported before a function that it lacks.
SELECT hugepage_library_version(needed => extversion)
FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_hugepages';

-- Calls of a function with a user's overload beside it would be ambiguous, in the views below and later.
CREATE FUNCTION hugepage_refuse_overloads(functions text) RETURNS void STRICT
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_refuse_overloads_wrapper';

SELECT hugepage_refuse_overloads(functions => pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::pg_catalog.text, ', '))
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_extension e ON p.pronamespace OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_hugepages'
    AND p.oid OPERATOR(pg_catalog.<>) 'hugepage_library_version(text)'::pg_catalog.regprocedure
    AND p.proname OPERATOR(pg_catalog.=) ANY (ARRAY[
        'hugepage_backends', 'hugepage_findings', 'hugepage_history', 'hugepage_host', 'hugepage_library_version',
        'hugepage_nodes', 'hugepage_page_tables', 'hugepage_pools', 'hugepage_preflight', 'hugepage_recommendations',
        'hugepage_segments', 'hugepage_status'
    ]::pg_catalog.name[]);

DROP FUNCTION hugepage_refuse_overloads(text);

REVOKE ALL ON FUNCTION hugepage_library_version(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_library_version(text) TO pg_monitor;
COMMENT ON FUNCTION hugepage_library_version(text) IS 'version of the library that this server runs; raises an error if it is older than the version needed';

-- src/views/backends.sql
CREATE FUNCTION hugepage_backends() RETURNS TABLE (
    pid integer, -- process id; the postmaster has a row, too
    backend_type text, -- as in pg_stat_activity, or postmaster or logger (syslogger from 19 on); NULL for a background worker without a database
    datid oid, -- its database, NULL if it has none
    usesysid oid, -- its role, NULL if it has none
    application_name text, -- as in pg_stat_activity
    state text, -- as in pg_stat_activity
    backend_start timestamp with time zone, -- when the process started
    page_tables bigint, -- VmPTE: its page tables, in bytes; NULL if unreadable
    rss_shmem bigint, -- RssShmem: its resident shared memory without hugetlb pages, in bytes
    rss_anon bigint, -- RssAnon: its resident private memory, in bytes
    rss_file bigint, -- RssFile: its resident file pages, in bytes
    swap bigint -- VmSwap: its private memory that is swapped out, in bytes
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_backends_wrapper';

COMMENT ON FUNCTION hugepage_backends() IS 'the processes of this server, with the memory of each';

CREATE VIEW hugepage_backends AS
    SELECT b.pid, b.backend_type, d.datname, r.rolname AS usename, b.application_name, b.state, b.backend_start,
           b.page_tables, b.rss_shmem, b.rss_anon, b.rss_file, b.swap
    FROM hugepage_backends() b
    LEFT JOIN pg_database d ON d.oid = b.datid
    LEFT JOIN pg_authid r ON r.oid = b.usesysid;

REVOKE ALL ON FUNCTION hugepage_backends() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_backends() TO pg_monitor;
REVOKE ALL ON hugepage_backends FROM PUBLIC;
GRANT SELECT ON hugepage_backends TO pg_monitor;
COMMENT ON VIEW hugepage_backends IS 'the processes of this server, with the memory of each';
COMMENT ON COLUMN hugepage_backends.pid IS 'process id; the postmaster has a row, too';
COMMENT ON COLUMN hugepage_backends.backend_type IS 'as in pg_stat_activity, or postmaster or logger (syslogger from 19 on); NULL for a background worker without a database';
COMMENT ON COLUMN hugepage_backends.datname IS 'its database, NULL if it has none';
COMMENT ON COLUMN hugepage_backends.usename IS 'its role, NULL if it has none';
COMMENT ON COLUMN hugepage_backends.application_name IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.state IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.backend_start IS 'when the process started';
COMMENT ON COLUMN hugepage_backends.page_tables IS 'VmPTE: its page tables, in bytes; NULL if unreadable';
COMMENT ON COLUMN hugepage_backends.rss_shmem IS 'RssShmem: its resident shared memory without hugetlb pages, in bytes';
COMMENT ON COLUMN hugepage_backends.rss_anon IS 'RssAnon: its resident private memory, in bytes';
COMMENT ON COLUMN hugepage_backends.rss_file IS 'RssFile: its resident file pages, in bytes';
COMMENT ON COLUMN hugepage_backends.swap IS 'VmSwap: its private memory that is swapped out, in bytes';

-- src/views/findings.sql
CREATE FUNCTION hugepage_findings() RETURNS TABLE (
    finding text, -- name of the finding, such as restart_loses; see docs/findings.md
    severity text, -- notice, warning or critical; NULL if a kernel advisory may not apply
    message text, -- the state, one sentence; of a kernel advisory also its source
    hint text -- the steps that help, NULL if there are none
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 3
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

COMMENT ON FUNCTION hugepage_findings() IS 'what was found about this server and its kernel, each with its severity and what to do; empty if all is as requested';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

COMMENT ON VIEW hugepage_findings IS 'what was found about this server and its kernel, each with its severity and what to do, the most severe first; empty if all is as requested';

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT SELECT ON hugepage_findings TO pg_monitor;
COMMENT ON COLUMN hugepage_findings.finding IS 'name of the finding, such as restart_loses; see docs/findings.md';
COMMENT ON COLUMN hugepage_findings.severity IS 'notice, warning or critical; NULL if a kernel advisory may not apply';
COMMENT ON COLUMN hugepage_findings.message IS 'the state, one sentence; of a kernel advisory also its source';
COMMENT ON COLUMN hugepage_findings.hint IS 'the steps that help, NULL if there are none';

-- src/views/history.sql
CREATE FUNCTION hugepage_history() RETURNS TABLE (
    recorded_at timestamp with time zone, -- time of the record
    event text, -- start, crash restart or change
    generation bigint, -- number of allocations of shared memory by that postmaster
    postmaster_start timestamp with time zone, -- start of the postmaster process
    server_version text, -- version of the server
    host text, -- name of the host
    boot_id text, -- identifier of the boot, from the kernel
    landed_in text, -- hugetlb, thp, partial thp, base or unknown
    page_size bigint, -- page size of the mapping, in bytes
    shared_memory bigint, -- size of the main segment, in bytes
    pages_needed bigint, -- huge pages that the segment needed
    nr_hugepages bigint, -- pages in the pool, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved
    surplus_hugepages bigint, -- pages beyond the configured size
    page_tables_host bigint, -- page tables of the whole host, in bytes
    restart_outlook text, -- what the next start would have got
    cause text, -- why shared memory was not in the pages that were asked for; NULL if it was
    regression boolean, -- whether it is worse than the record of this server before it
    detail text, -- what regressed or changed
    was_recorded_at timestamp with time zone, -- time of the better record before a regression; NULL if this is none
    was_landed_in text, -- landed_in before a regression
    was_page_size bigint, -- page_size before a regression, in bytes
    was_restart_outlook text -- restart_outlook before a regression
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 1000
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_history_wrapper';

COMMENT ON FUNCTION hugepage_history() IS 'starts and state changes of this cluster on this machine; recorded if the library is preloaded';

CREATE VIEW hugepage_history AS
    SELECT * FROM hugepage_history();

COMMENT ON VIEW hugepage_history IS 'starts and state changes of this cluster on this machine, the oldest first; recorded if the library is preloaded';

REVOKE ALL ON FUNCTION hugepage_history() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_history() TO pg_monitor;
REVOKE ALL ON hugepage_history FROM PUBLIC;
GRANT SELECT ON hugepage_history TO pg_monitor;
COMMENT ON COLUMN hugepage_history.recorded_at IS 'time of the record';
COMMENT ON COLUMN hugepage_history.event IS 'start, crash restart or change';
COMMENT ON COLUMN hugepage_history.generation IS 'number of allocations of shared memory by that postmaster';
COMMENT ON COLUMN hugepage_history.postmaster_start IS 'start of the postmaster process';
COMMENT ON COLUMN hugepage_history.server_version IS 'version of the server';
COMMENT ON COLUMN hugepage_history.host IS 'name of the host';
COMMENT ON COLUMN hugepage_history.boot_id IS 'identifier of the boot, from the kernel';
COMMENT ON COLUMN hugepage_history.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_history.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_history.shared_memory IS 'size of the main segment, in bytes';
COMMENT ON COLUMN hugepage_history.pages_needed IS 'huge pages that the segment needed';
COMMENT ON COLUMN hugepage_history.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_history.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_history.resv_hugepages IS 'free pages that are reserved';
COMMENT ON COLUMN hugepage_history.surplus_hugepages IS 'pages beyond the configured size';
COMMENT ON COLUMN hugepage_history.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_history.restart_outlook IS 'what the next start would have got';
COMMENT ON COLUMN hugepage_history.cause IS 'why shared memory was not in the pages that were asked for; NULL if it was';
COMMENT ON COLUMN hugepage_history.regression IS 'whether it is worse than the record of this server before it';
COMMENT ON COLUMN hugepage_history.detail IS 'what regressed or changed';
COMMENT ON COLUMN hugepage_history.was_recorded_at IS 'time of the better record before a regression; NULL if this is none';
COMMENT ON COLUMN hugepage_history.was_landed_in IS 'landed_in before a regression';
COMMENT ON COLUMN hugepage_history.was_page_size IS 'page_size before a regression, in bytes';
COMMENT ON COLUMN hugepage_history.was_restart_outlook IS 'restart_outlook before a regression';

-- src/views/host.sql
CREATE FUNCTION hugepage_host() RETURNS TABLE (
    name text, -- name of the setting or line in the kernel
    setting text, -- its value; NULL if lxcfs shows that of a container
    unit text, -- bytes, kB, pages, % or NULL
    source text -- the file that the value was read from
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 50
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and numbers that affect huge pages';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();

REVOKE ALL ON FUNCTION hugepage_host() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_host() TO pg_monitor;
REVOKE ALL ON hugepage_host FROM PUBLIC;
GRANT SELECT ON hugepage_host TO pg_monitor;
COMMENT ON VIEW hugepage_host IS 'the kernel''s settings and numbers that affect huge pages';
COMMENT ON COLUMN hugepage_host.name IS 'name of the setting or line in the kernel';
COMMENT ON COLUMN hugepage_host.setting IS 'its value; NULL if lxcfs shows that of a container';
COMMENT ON COLUMN hugepage_host.unit IS 'bytes, kB, pages, % or NULL';
COMMENT ON COLUMN hugepage_host.source IS 'the file that the value was read from';

-- src/views/nodes.sql
CREATE FUNCTION hugepage_nodes() RETURNS TABLE (
    node integer, -- NUMA node
    page_size bigint, -- page size of the pool that this server uses or would use, in bytes
    nr_hugepages bigint, -- pages of the pool on the node, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved; NULL if there are several nodes
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    memory bigint, -- memory of the node, in bytes
    segment_pages bigint, -- huge pages of the main segment on the node, each counted once; 0 in 4 kB pages, NULL if the kernel does not say
    allowed boolean -- whether cpuset and memory policy of this server allow the node; NULL if unknown
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();

REVOKE ALL ON FUNCTION hugepage_nodes() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_nodes() TO pg_monitor;
REVOKE ALL ON hugepage_nodes FROM PUBLIC;
GRANT SELECT ON hugepage_nodes TO pg_monitor;
COMMENT ON VIEW hugepage_nodes IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';
COMMENT ON COLUMN hugepage_nodes.node IS 'NUMA node';
COMMENT ON COLUMN hugepage_nodes.page_size IS 'page size of the pool that this server uses or would use, in bytes';
COMMENT ON COLUMN hugepage_nodes.nr_hugepages IS 'pages of the pool on the node, surplus included';
COMMENT ON COLUMN hugepage_nodes.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_nodes.resv_hugepages IS 'free pages that are reserved; NULL if there are several nodes';
COMMENT ON COLUMN hugepage_nodes.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_nodes.memory IS 'memory of the node, in bytes';
COMMENT ON COLUMN hugepage_nodes.segment_pages IS 'huge pages of the main segment on the node, each counted once; 0 in 4 kB pages, NULL if the kernel does not say';
COMMENT ON COLUMN hugepage_nodes.allowed IS 'whether cpuset and memory policy of this server allow the node; NULL if unknown';

-- src/views/page_tables.sql
CREATE FUNCTION hugepage_page_tables() RETURNS TABLE (
    processes bigint, -- processes of this server, with the postmaster
    page_tables_total bigint, -- page tables of all these processes, in bytes
    page_tables_max bigint, -- largest page tables of one process, in bytes
    page_tables_host bigint, -- page tables of the whole host, in bytes
    memory_total bigint, -- memory of the host, in bytes
    share_of_memory double precision, -- page_tables_total / memory_total, from 0 to 1
    estimated_on_huge_pages bigint, -- estimated page_tables_total with shared memory in huge pages, in bytes
    saving bigint, -- what huge pages would free at least, in bytes
    estimated_at_max_connections bigint -- page tables of max_connections sessions that have accessed all of shared memory, in its current pages, in bytes
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_page_tables_wrapper';

COMMENT ON FUNCTION hugepage_page_tables() IS 'page tables of this server, and an estimate of what huge pages would save';

CREATE VIEW hugepage_page_tables AS
    SELECT * FROM hugepage_page_tables();

REVOKE ALL ON FUNCTION hugepage_page_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_page_tables() TO pg_monitor;
REVOKE ALL ON hugepage_page_tables FROM PUBLIC;
GRANT SELECT ON hugepage_page_tables TO pg_monitor;
COMMENT ON VIEW hugepage_page_tables IS 'page tables of this server, and an estimate of what huge pages would save';
COMMENT ON COLUMN hugepage_page_tables.processes IS 'processes of this server, with the postmaster';
COMMENT ON COLUMN hugepage_page_tables.page_tables_total IS 'page tables of all these processes, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_max IS 'largest page tables of one process, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.memory_total IS 'memory of the host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.share_of_memory IS 'page_tables_total / memory_total, from 0 to 1';
COMMENT ON COLUMN hugepage_page_tables.estimated_on_huge_pages IS 'estimated page_tables_total with shared memory in huge pages, in bytes';
COMMENT ON COLUMN hugepage_page_tables.saving IS 'what huge pages would free at least, in bytes';
COMMENT ON COLUMN hugepage_page_tables.estimated_at_max_connections IS 'page tables of max_connections sessions that have accessed all of shared memory, in its current pages, in bytes';

-- src/views/pools.sql
CREATE FUNCTION hugepage_pools() RETURNS TABLE (
    page_size bigint, -- page size of the pool, in bytes
    is_default boolean, -- whether mappings that ask for no size get this size
    nr_hugepages bigint, -- pages in the pool, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    nr_overcommit_hugepages bigint, -- surplus pages that the kernel may allocate
    available_hugepages bigint, -- free pages that are not reserved
    cgroup_limit bigint, -- the cgroup limit that leaves the least, in bytes; NULL if none is visible
    cgroup_usage bigint -- usage that counts against cgroup_limit, in bytes
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();

REVOKE ALL ON FUNCTION hugepage_pools() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_pools() TO pg_monitor;
REVOKE ALL ON hugepage_pools FROM PUBLIC;
GRANT SELECT ON hugepage_pools TO pg_monitor;
COMMENT ON VIEW hugepage_pools IS 'the huge page pools of this host, by page size';
COMMENT ON COLUMN hugepage_pools.page_size IS 'page size of the pool, in bytes';
COMMENT ON COLUMN hugepage_pools.is_default IS 'whether mappings that ask for no size get this size';
COMMENT ON COLUMN hugepage_pools.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_pools.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_pools.resv_hugepages IS 'free pages that are reserved';
COMMENT ON COLUMN hugepage_pools.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_pools.nr_overcommit_hugepages IS 'surplus pages that the kernel may allocate';
COMMENT ON COLUMN hugepage_pools.available_hugepages IS 'free pages that are not reserved';
COMMENT ON COLUMN hugepage_pools.cgroup_limit IS 'the cgroup limit that leaves the least, in bytes; NULL if none is visible';
COMMENT ON COLUMN hugepage_pools.cgroup_usage IS 'usage that counts against cgroup_limit, in bytes';

-- src/views/preflight.sql
CREATE FUNCTION hugepage_preflight(
    shared_buffers text DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size text DEFAULT NULL
) RETURNS TABLE (
    will_start boolean, -- whether the server would start; NULL if unknown
    lands_in text, -- hugetlb, base or unknown; NULL if the server would not start
    page_size bigint, -- size of these pages, in bytes; NULL if unknown
    shared_memory bigint, -- size of the main segment, in bytes
    pages_needed bigint, -- huge pages that the segment needs
    pages_guaranteed bigint, -- pages of the pool that the start would certainly get
    pages_missing bigint, -- pages needed beyond these
    cause text, -- why the segment would not be in huge pages
    detail text, -- why the server would not start, or why that is unknown
    hint text, -- what to do so that the start gets huge pages; NULL if it gets them, or nothing is known to help
    page_tables_base bigint, -- page tables of max_connections sessions in 4 kB pages, in bytes
    page_tables_huge bigint -- the same in huge pages, in bytes
)
    VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

COMMENT ON FUNCTION hugepage_preflight(text, integer, text) IS 'what a start with the configuration on disk would get, or with other values, written as in postgresql.conf; runs the server''s program';

REVOKE ALL ON FUNCTION hugepage_preflight(text, integer, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_preflight(text, integer, text) TO pg_monitor;

-- src/views/recommendations.sql
CREATE FUNCTION hugepage_recommendations() RETURNS TABLE (
    priority integer, -- 1 is the most urgent
    severity text, -- notice, warning or critical
    area text, -- postgresql, kernel, boot, limits or cgroup
    setting text, -- the setting to change
    current text, -- its current value, NULL if none or unknown
    recommended text, -- the recommended value, NULL if the hint of the finding has a bound instead
    reason text, -- the reason, with the numbers of this host
    command text, -- the command that sets it: SQL for the area postgresql, else for a root shell
    takes_effect text, -- when the change takes effect: now, server restart or reboot
    saving bigint -- memory that it frees, in bytes; NULL if none or unknown
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();

REVOKE ALL ON FUNCTION hugepage_recommendations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_recommendations() TO pg_monitor;
REVOKE ALL ON hugepage_recommendations FROM PUBLIC;
GRANT SELECT ON hugepage_recommendations TO pg_monitor;
COMMENT ON VIEW hugepage_recommendations IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON COLUMN hugepage_recommendations.priority IS '1 is the most urgent';
COMMENT ON COLUMN hugepage_recommendations.severity IS 'notice, warning or critical';
COMMENT ON COLUMN hugepage_recommendations.area IS 'postgresql, kernel, boot, limits or cgroup';
COMMENT ON COLUMN hugepage_recommendations.setting IS 'the setting to change';
COMMENT ON COLUMN hugepage_recommendations.current IS 'its current value, NULL if none or unknown';
COMMENT ON COLUMN hugepage_recommendations.recommended IS 'the recommended value, NULL if the hint of the finding has a bound instead';
COMMENT ON COLUMN hugepage_recommendations.reason IS 'the reason, with the numbers of this host';
COMMENT ON COLUMN hugepage_recommendations.command IS 'the command that sets it: SQL for the area postgresql, else for a root shell';
COMMENT ON COLUMN hugepage_recommendations.takes_effect IS 'when the change takes effect: now, server restart or reboot';
COMMENT ON COLUMN hugepage_recommendations.saving IS 'memory that it frees, in bytes; NULL if none or unknown';

-- src/views/segments.sql
CREATE FUNCTION hugepage_segments(measure_resident boolean DEFAULT false) RETURNS TABLE (
    segment text, -- main, interlock, dynamic or other
    mapping text, -- name of the mapping in the kernel
    size bigint, -- memory of the mapping that this process may access, in bytes
    page_size bigint, -- page size of the mapping, in bytes
    landed_in text, -- hugetlb, thp, partial thp, base or unknown
    reserved bigint, -- address space of the mapping, in bytes: more than size if the server may resize it
    resident bigint, -- memory that this process has touched, in bytes; NULL unless measured
    thp_mapped bigint, -- of that, memory in transparent huge pages, in bytes; NULL unless measured
    hugetlb bigint -- of that, memory in hugetlb pages, in bytes; NULL unless measured
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 4
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

COMMENT ON FUNCTION hugepage_segments(boolean) IS 'the shared memory that this server process maps; with measure_resident its resident part too, for which the kernel walks the page tables';

CREATE VIEW hugepage_segments AS
    SELECT segment, mapping, size, page_size, landed_in, reserved FROM hugepage_segments();

COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';

REVOKE ALL ON FUNCTION hugepage_segments(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_segments(boolean) TO pg_monitor;
REVOKE ALL ON hugepage_segments FROM PUBLIC;
GRANT SELECT ON hugepage_segments TO pg_monitor;
COMMENT ON COLUMN hugepage_segments.segment IS 'main, interlock, dynamic or other';
COMMENT ON COLUMN hugepage_segments.mapping IS 'name of the mapping in the kernel';
COMMENT ON COLUMN hugepage_segments.size IS 'memory of the mapping that this process may access, in bytes';
COMMENT ON COLUMN hugepage_segments.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_segments.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_segments.reserved IS 'address space of the mapping, in bytes: more than size if the server may resize it';

-- src/views/status.sql
CREATE FUNCTION hugepage_status() RETURNS TABLE (
    verdict text, -- ok, notice, warning or critical
    message text, -- the state, one sentence
    hint text, -- what to do, one sentence; NULL if nothing
    shared_buffers_in_huge_pages boolean, -- whether the mapping with shared_buffers is in huge pages of the pool, not transparent ones; NULL if unknown
    landed_in text, -- hugetlb, thp, partial thp, base or unknown
    mapping text, -- name of the mapping in the kernel: anon_hugepage, zero, SYSV...
    page_size bigint, -- page size of the mapping, in bytes
    cause text, -- why shared memory is not in the pages that were asked for; NULL if it is
    shared_buffers bigint, -- size of the buffer pool, in bytes
    shared_memory bigint, -- size of the main segment, in bytes
    huge_pages text, -- value of the setting huge_pages
    huge_page_size bigint, -- the huge page size in effect, in bytes
    pages_needed bigint, -- huge pages that the running segment needs
    pages_missing bigint, -- of these, pages that are not available now; 0 in huge pages
    nr_hugepages bigint, -- pages in the pool of that page size, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    available_hugepages bigint, -- free pages that are not reserved
    page_tables_host bigint, -- page tables of the whole host, in bytes
    transparent_hugepage text, -- transparent huge pages: always, madvise or never; NULL if the kernel has none
    restart_outlook text, -- what a restart with the configuration on disk would get: hugetlb, base, fails or unknown
    recommended_nr_hugepages bigint, -- recommended size of the pool, in pages: what this server needs and others hold, never less than it has
    generation bigint, -- number of allocations of shared memory by this postmaster; NULL if the library is not preloaded
    notes text[], -- what could not be read, and why
    crash_outlook text, -- what the restart after a crash of one process would get, with the running settings: hugetlb, base, fails or unknown
    boot_outlook text -- what the first start after the next boot would get: hugetlb, base, fails or unknown; NULL if nobody has looked
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_status_wrapper';

COMMENT ON FUNCTION hugepage_status() IS 'whether shared memory landed in huge pages, why not, and what to set';

CREATE VIEW hugepage_status AS
    SELECT * FROM hugepage_status();

REVOKE ALL ON FUNCTION hugepage_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_status() TO pg_monitor;
REVOKE ALL ON hugepage_status FROM PUBLIC;
GRANT SELECT ON hugepage_status TO pg_monitor;
COMMENT ON VIEW hugepage_status IS 'whether shared memory landed in huge pages, why not, and what to set';
COMMENT ON COLUMN hugepage_status.verdict IS 'ok, notice, warning or critical';
COMMENT ON COLUMN hugepage_status.message IS 'the state, one sentence';
COMMENT ON COLUMN hugepage_status.hint IS 'what to do, one sentence; NULL if nothing';
COMMENT ON COLUMN hugepage_status.shared_buffers_in_huge_pages IS 'whether the mapping with shared_buffers is in huge pages of the pool, not transparent ones; NULL if unknown';
COMMENT ON COLUMN hugepage_status.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_status.mapping IS 'name of the mapping in the kernel: anon_hugepage, zero, SYSV...';
COMMENT ON COLUMN hugepage_status.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_status.cause IS 'why shared memory is not in the pages that were asked for; NULL if it is';
COMMENT ON COLUMN hugepage_status.shared_buffers IS 'size of the buffer pool, in bytes';
COMMENT ON COLUMN hugepage_status.shared_memory IS 'size of the main segment, in bytes';
COMMENT ON COLUMN hugepage_status.huge_pages IS 'value of the setting huge_pages';
COMMENT ON COLUMN hugepage_status.huge_page_size IS 'the huge page size in effect, in bytes';
COMMENT ON COLUMN hugepage_status.pages_needed IS 'huge pages that the running segment needs';
COMMENT ON COLUMN hugepage_status.pages_missing IS 'of these, pages that are not available now; 0 in huge pages';
COMMENT ON COLUMN hugepage_status.nr_hugepages IS 'pages in the pool of that page size, surplus included';
COMMENT ON COLUMN hugepage_status.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_status.resv_hugepages IS 'free pages that are reserved';
COMMENT ON COLUMN hugepage_status.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_status.available_hugepages IS 'free pages that are not reserved';
COMMENT ON COLUMN hugepage_status.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_status.transparent_hugepage IS 'transparent huge pages: always, madvise or never; NULL if the kernel has none';
COMMENT ON COLUMN hugepage_status.restart_outlook IS 'what a restart with the configuration on disk would get: hugetlb, base, fails or unknown';
COMMENT ON COLUMN hugepage_status.recommended_nr_hugepages IS 'recommended size of the pool, in pages: what this server needs and others hold, never less than it has';
COMMENT ON COLUMN hugepage_status.generation IS 'number of allocations of shared memory by this postmaster; NULL if the library is not preloaded';
COMMENT ON COLUMN hugepage_status.notes IS 'what could not be read, and why';
COMMENT ON COLUMN hugepage_status.crash_outlook IS 'what the restart after a crash of one process would get, with the running settings: hugetlb, base, fails or unknown';
COMMENT ON COLUMN hugepage_status.boot_outlook IS 'what the first start after the next boot would get: hugetlb, base, fails or unknown; NULL if nobody has looked';
