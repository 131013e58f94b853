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
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid
            AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
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
CREATE TYPE hugepage_backends_row AS (
    pid integer,
    backend_type text,
    datid oid,
    usesysid oid,
    application_name text,
    state text,
    backend_start timestamp with time zone,
    page_tables bigint,
    rss_shmem bigint,
    rss_anon bigint,
    rss_file bigint,
    swap bigint
);

CREATE FUNCTION hugepage_backends() RETURNS SETOF hugepage_backends_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 100
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
COMMENT ON TYPE hugepage_backends_row IS 'a row of hugepage_backends';
REVOKE ALL ON hugepage_backends FROM PUBLIC;
GRANT SELECT ON hugepage_backends TO pg_monitor;
COMMENT ON VIEW hugepage_backends IS 'the processes of this server, with the memory of each';
COMMENT ON COLUMN hugepage_backends.pid IS 'process id; the postmaster has a row, too';
COMMENT ON COLUMN hugepage_backends.backend_type IS 'as in pg_stat_activity, or postmaster or logger (syslogger from 19 on); NULL for a background worker without a database';
COMMENT ON COLUMN hugepage_backends.datname IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.usename IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.application_name IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.state IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.backend_start IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.page_tables IS 'its page tables (VmPTE), in bytes';
COMMENT ON COLUMN hugepage_backends.rss_shmem IS 'its resident shared memory without hugetlb pages (RssShmem), in bytes';
COMMENT ON COLUMN hugepage_backends.rss_anon IS 'its resident private memory (RssAnon), in bytes';
COMMENT ON COLUMN hugepage_backends.rss_file IS 'its resident file pages (RssFile), in bytes';
COMMENT ON COLUMN hugepage_backends.swap IS 'its private memory that is swapped out (VmSwap), in bytes';

-- src/views/findings.sql
CREATE TYPE hugepage_findings_row AS (
    finding text,
    severity text,
    message text,
    hint text
);

CREATE FUNCTION hugepage_findings() RETURNS SETOF hugepage_findings_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 3
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

COMMENT ON FUNCTION hugepage_findings() IS 'problems and risks of this server and its kernel; empty if all is as requested';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

COMMENT ON VIEW hugepage_findings IS 'problems and risks of this server and its kernel, the most severe first; empty if all is as requested';

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
COMMENT ON TYPE hugepage_findings_row IS 'a row of hugepage_findings';
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT SELECT ON hugepage_findings TO pg_monitor;
COMMENT ON COLUMN hugepage_findings.finding IS 'its name, such as restart_loses; see docs/findings.md';
COMMENT ON COLUMN hugepage_findings.severity IS 'notice, warning or critical; NULL if a kernel advisory may not apply';
COMMENT ON COLUMN hugepage_findings.message IS 'the state in one sentence; for a kernel advisory also its source';
COMMENT ON COLUMN hugepage_findings.hint IS 'what to do, and which servers its number counts; NULL if nothing';

-- src/views/history.sql
CREATE TYPE hugepage_history_row AS (
    recorded_at timestamp with time zone,
    event text,
    generation bigint,
    postmaster_start timestamp with time zone,
    server_version text,
    host text,
    boot_id text,
    landed_in text,
    page_size bigint,
    shared_memory bigint,
    pages_needed bigint,
    nr_hugepages bigint,
    free_hugepages bigint,
    resv_hugepages bigint,
    surplus_hugepages bigint,
    page_tables_host bigint,
    restart_outlook text,
    cause text,
    regression boolean,
    detail text,
    was_recorded_at timestamp with time zone,
    was_landed_in text,
    was_page_size bigint,
    was_restart_outlook text
);

CREATE FUNCTION hugepage_history() RETURNS SETOF hugepage_history_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_history_wrapper';

COMMENT ON FUNCTION hugepage_history() IS 'starts and state changes of this cluster on this machine; recorded if the library is preloaded';

CREATE VIEW hugepage_history AS
    SELECT * FROM hugepage_history();

COMMENT ON VIEW hugepage_history IS 'starts and state changes of this cluster on this machine, the oldest first; recorded if the library is preloaded';

REVOKE ALL ON FUNCTION hugepage_history() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_history() TO pg_monitor;
COMMENT ON TYPE hugepage_history_row IS 'a row of hugepage_history';
REVOKE ALL ON hugepage_history FROM PUBLIC;
GRANT SELECT ON hugepage_history TO pg_monitor;
COMMENT ON COLUMN hugepage_history.recorded_at IS 'when it was recorded';
COMMENT ON COLUMN hugepage_history.event IS 'start, crash restart, change, collapse (transparent huge pages appeared) or split (they are gone)';
COMMENT ON COLUMN hugepage_history.generation IS 'how often this postmaster has allocated shared memory; NULL if the library is not preloaded';
COMMENT ON COLUMN hugepage_history.postmaster_start IS 'when the postmaster started';
COMMENT ON COLUMN hugepage_history.server_version IS 'version of the server';
COMMENT ON COLUMN hugepage_history.host IS 'name of the host';
COMMENT ON COLUMN hugepage_history.boot_id IS 'the kernel''s identifier of the boot';
COMMENT ON COLUMN hugepage_history.landed_in IS 'the pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed';
COMMENT ON COLUMN hugepage_history.page_size IS 'page size of the mapping, in bytes; for a mixed SGA the huge page size';
COMMENT ON COLUMN hugepage_history.shared_memory IS 'size of the main segment, in bytes; for Oracle of the whole SGA';
COMMENT ON COLUMN hugepage_history.pages_needed IS 'huge pages that the running segment has or would need';
COMMENT ON COLUMN hugepage_history.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_history.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_history.resv_hugepages IS 'free pages that are reserved';
COMMENT ON COLUMN hugepage_history.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_history.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_history.restart_outlook IS 'what a start with the configuration on disk would get: hugetlb, base, fails or unknown; for Oracle also mixed';
COMMENT ON COLUMN hugepage_history.cause IS 'why shared memory is not in the pages that were requested; NULL if it is';
COMMENT ON COLUMN hugepage_history.regression IS 'whether the server was worse off than in the record before';
COMMENT ON COLUMN hugepage_history.detail IS 'what regressed or changed';
COMMENT ON COLUMN hugepage_history.was_recorded_at IS 'of the better record before a regression; NULL if this record is none';
COMMENT ON COLUMN hugepage_history.was_landed_in IS 'of the better record before a regression; NULL if this record is none';
COMMENT ON COLUMN hugepage_history.was_page_size IS 'of the better record before a regression, in bytes; NULL if this record is none';
COMMENT ON COLUMN hugepage_history.was_restart_outlook IS 'of the better record before a regression; NULL if this record is none';

-- src/views/host.sql
CREATE TYPE hugepage_host_row AS (
    name text,
    setting text,
    unit text,
    source text
);

CREATE FUNCTION hugepage_host() RETURNS SETOF hugepage_host_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 50
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and numbers that affect huge pages';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();

REVOKE ALL ON FUNCTION hugepage_host() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_host() TO pg_monitor;
COMMENT ON TYPE hugepage_host_row IS 'a row of hugepage_host';
REVOKE ALL ON hugepage_host FROM PUBLIC;
GRANT SELECT ON hugepage_host TO pg_monitor;
COMMENT ON VIEW hugepage_host IS 'the kernel''s settings and numbers that affect huge pages';
COMMENT ON COLUMN hugepage_host.name IS 'name of the setting, or of a line in the kernel''s file';
COMMENT ON COLUMN hugepage_host.setting IS 'its value; NULL if lxcfs shows a container''s';
COMMENT ON COLUMN hugepage_host.unit IS 'bytes, kB, pages, % or NULL';
COMMENT ON COLUMN hugepage_host.source IS 'the file with the value';

-- src/views/nodes.sql
CREATE TYPE hugepage_nodes_row AS (
    node integer,
    page_size bigint,
    nr_hugepages bigint,
    free_hugepages bigint,
    resv_hugepages bigint,
    surplus_hugepages bigint,
    memory bigint,
    segment_pages bigint,
    allowed boolean
);

CREATE FUNCTION hugepage_nodes() RETURNS SETOF hugepage_nodes_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();

REVOKE ALL ON FUNCTION hugepage_nodes() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_nodes() TO pg_monitor;
COMMENT ON TYPE hugepage_nodes_row IS 'a row of hugepage_nodes';
REVOKE ALL ON hugepage_nodes FROM PUBLIC;
GRANT SELECT ON hugepage_nodes TO pg_monitor;
COMMENT ON VIEW hugepage_nodes IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';
COMMENT ON COLUMN hugepage_nodes.node IS 'NUMA node';
COMMENT ON COLUMN hugepage_nodes.page_size IS 'page size of the pool that this server uses or would use, in bytes';
COMMENT ON COLUMN hugepage_nodes.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_nodes.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_nodes.resv_hugepages IS 'free pages that are reserved; NULL if there are several nodes';
COMMENT ON COLUMN hugepage_nodes.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_nodes.memory IS 'memory of the node, in bytes';
COMMENT ON COLUMN hugepage_nodes.segment_pages IS 'huge pages of the main segment on the node; 0 in 4 kB pages, NULL if the kernel does not say';
COMMENT ON COLUMN hugepage_nodes.allowed IS 'whether this server''s cpuset and memory policy allow the node';

-- src/views/page_tables.sql
CREATE TYPE hugepage_page_tables_row AS (
    processes bigint,
    page_tables_total bigint,
    page_tables_max bigint,
    page_tables_host bigint,
    memory_total bigint,
    share_of_memory double precision,
    estimated_on_huge_pages bigint,
    saving bigint,
    estimated_at_max_connections bigint
);

CREATE FUNCTION hugepage_page_tables() RETURNS SETOF hugepage_page_tables_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_page_tables_wrapper';

COMMENT ON FUNCTION hugepage_page_tables() IS 'page tables of this server, and an estimate of what huge pages would save';

CREATE VIEW hugepage_page_tables AS
    SELECT * FROM hugepage_page_tables();

REVOKE ALL ON FUNCTION hugepage_page_tables() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_page_tables() TO pg_monitor;
COMMENT ON TYPE hugepage_page_tables_row IS 'a row of hugepage_page_tables';
REVOKE ALL ON hugepage_page_tables FROM PUBLIC;
GRANT SELECT ON hugepage_page_tables TO pg_monitor;
COMMENT ON VIEW hugepage_page_tables IS 'page tables of this server, and an estimate of what huge pages would save';
COMMENT ON COLUMN hugepage_page_tables.processes IS 'the server''s processes, with the postmaster';
COMMENT ON COLUMN hugepage_page_tables.page_tables_total IS 'the server''s page tables, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_max IS 'page tables of the process with the most, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.memory_total IS 'memory of the host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.share_of_memory IS 'page_tables_total / memory_total, from 0 to 1';
COMMENT ON COLUMN hugepage_page_tables.estimated_on_huge_pages IS 'estimate of page_tables_total with shared memory in huge pages, in bytes';
COMMENT ON COLUMN hugepage_page_tables.saving IS 'page tables that huge pages would save at least, in bytes';
COMMENT ON COLUMN hugepage_page_tables.estimated_at_max_connections IS 'page tables if max_connections sessions had used all of shared memory, in its current pages, in bytes';

-- src/views/pools.sql
CREATE TYPE hugepage_pools_row AS (
    page_size bigint,
    is_default boolean,
    nr_hugepages bigint,
    free_hugepages bigint,
    resv_hugepages bigint,
    surplus_hugepages bigint,
    nr_overcommit_hugepages bigint,
    available_hugepages bigint,
    cgroup_limit bigint,
    cgroup_usage bigint
);

CREATE FUNCTION hugepage_pools() RETURNS SETOF hugepage_pools_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();

REVOKE ALL ON FUNCTION hugepage_pools() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_pools() TO pg_monitor;
COMMENT ON TYPE hugepage_pools_row IS 'a row of hugepage_pools';
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
CREATE TYPE hugepage_preflight_row AS (
    will_start boolean,
    lands_in text,
    page_size bigint,
    shared_memory bigint,
    pages_needed bigint,
    pages_guaranteed bigint,
    pages_missing bigint,
    cause text,
    detail text,
    hint text,
    page_tables_base bigint,
    page_tables_huge bigint
);

CREATE FUNCTION hugepage_preflight(
    shared_buffers text DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size text DEFAULT NULL
) RETURNS SETOF hugepage_preflight_row
    VOLATILE PARALLEL UNSAFE COST 100000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

COMMENT ON FUNCTION hugepage_preflight(text, integer, text) IS 'what a start would get with the configuration on disk, or with other values, written as in postgresql.conf; runs the server''s program';

REVOKE ALL ON FUNCTION hugepage_preflight(text, integer, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_preflight(text, integer, text) TO pg_monitor;
COMMENT ON TYPE hugepage_preflight_row IS 'a row of hugepage_preflight';
COMMENT ON COLUMN hugepage_preflight_row.will_start IS 'whether the server would start';
COMMENT ON COLUMN hugepage_preflight_row.lands_in IS 'hugetlb, base or unknown; NULL if the server would not start';
COMMENT ON COLUMN hugepage_preflight_row.page_size IS 'size of these pages, in bytes';
COMMENT ON COLUMN hugepage_preflight_row.shared_memory IS 'size of the main segment, in bytes; for Oracle of the whole SGA';
COMMENT ON COLUMN hugepage_preflight_row.pages_needed IS 'huge pages that the segment needs';
COMMENT ON COLUMN hugepage_preflight_row.pages_guaranteed IS 'pages of the pool that the start would certainly get';
COMMENT ON COLUMN hugepage_preflight_row.pages_missing IS 'pages that it needs beyond these';
COMMENT ON COLUMN hugepage_preflight_row.cause IS 'why the segment would not be in huge pages';
COMMENT ON COLUMN hugepage_preflight_row.detail IS 'why the server would not start, or why that is unknown; else what was not checked';
COMMENT ON COLUMN hugepage_preflight_row.hint IS 'what to do so that the start gets huge pages; NULL if it gets them, or nothing is known to help';
COMMENT ON COLUMN hugepage_preflight_row.page_tables_base IS 'page tables of max_connections sessions in 4 kB pages, in bytes';
COMMENT ON COLUMN hugepage_preflight_row.page_tables_huge IS 'the same in huge pages, in bytes';

-- src/views/recommendations.sql
CREATE TYPE hugepage_recommendations_row AS (
    priority integer,
    severity text,
    area text,
    setting text,
    current text,
    recommended text,
    reason text,
    command text,
    takes_effect text,
    saving bigint
);

CREATE FUNCTION hugepage_recommendations() RETURNS SETOF hugepage_recommendations_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();

REVOKE ALL ON FUNCTION hugepage_recommendations() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_recommendations() TO pg_monitor;
COMMENT ON TYPE hugepage_recommendations_row IS 'a row of hugepage_recommendations';
REVOKE ALL ON hugepage_recommendations FROM PUBLIC;
GRANT SELECT ON hugepage_recommendations TO pg_monitor;
COMMENT ON VIEW hugepage_recommendations IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON COLUMN hugepage_recommendations.priority IS '1 is the most urgent';
COMMENT ON COLUMN hugepage_recommendations.severity IS 'notice, warning or critical';
COMMENT ON COLUMN hugepage_recommendations.area IS 'where the setting belongs: postgresql, kernel, boot, limits, cgroup or oracle';
COMMENT ON COLUMN hugepage_recommendations.setting IS 'its name in the file or command that sets it';
COMMENT ON COLUMN hugepage_recommendations.current IS 'its current value; NULL if none or unknown';
COMMENT ON COLUMN hugepage_recommendations.recommended IS 'the recommended value; NULL if the finding''s hint has a bound instead';
COMMENT ON COLUMN hugepage_recommendations.reason IS 'why, with the numbers of this host';
COMMENT ON COLUMN hugepage_recommendations.command IS 'what sets it: SQL for the area postgresql, a line of the manifest for a pod, else a command for a root shell';
COMMENT ON COLUMN hugepage_recommendations.takes_effect IS 'now, server restart or reboot';
COMMENT ON COLUMN hugepage_recommendations.saving IS 'memory that it frees, in bytes; NULL if none or unknown';

-- src/views/segments.sql
CREATE TYPE hugepage_segments_row AS (
    segment text,
    mapping text,
    size bigint,
    page_size bigint,
    landed_in text,
    reserved bigint,
    resident bigint,
    thp_mapped bigint,
    hugetlb bigint
);

CREATE FUNCTION hugepage_segments(measure_resident boolean DEFAULT false) RETURNS SETOF hugepage_segments_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 4
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

COMMENT ON FUNCTION hugepage_segments(boolean) IS 'the shared memory that this server process maps; with measure_resident its resident part too, for which the kernel walks the page tables';

CREATE VIEW hugepage_segments AS
    SELECT segment, mapping, size, page_size, landed_in, reserved FROM hugepage_segments();

COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';

REVOKE ALL ON FUNCTION hugepage_segments(boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_segments(boolean) TO pg_monitor;
COMMENT ON TYPE hugepage_segments_row IS 'a row of hugepage_segments';
REVOKE ALL ON hugepage_segments FROM PUBLIC;
GRANT SELECT ON hugepage_segments TO pg_monitor;
COMMENT ON COLUMN hugepage_segments.segment IS 'main, interlock, dynamic or other';
COMMENT ON COLUMN hugepage_segments.mapping IS 'the kernel''s name of the mapping: anon_hugepage, zero, SYSV...; for Oracle of the largest segment';
COMMENT ON COLUMN hugepage_segments.size IS 'memory that this process may access, in bytes';
COMMENT ON COLUMN hugepage_segments.page_size IS 'page size of the mapping, in bytes; for a mixed SGA the huge page size';
COMMENT ON COLUMN hugepage_segments.landed_in IS 'the pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed';
COMMENT ON COLUMN hugepage_segments.reserved IS 'its address space: more than size if the server may resize it, in bytes';

-- src/views/status.sql
CREATE TYPE hugepage_status_row AS (
    verdict text,
    message text,
    hint text,
    shared_buffers_in_huge_pages boolean,
    landed_in text,
    mapping text,
    page_size bigint,
    cause text,
    shared_buffers bigint,
    shared_memory bigint,
    huge_pages text,
    huge_page_size bigint,
    pages_needed bigint,
    pages_missing bigint,
    nr_hugepages bigint,
    free_hugepages bigint,
    resv_hugepages bigint,
    surplus_hugepages bigint,
    available_hugepages bigint,
    page_tables_host bigint,
    transparent_hugepage text,
    restart_outlook text,
    recommended_nr_hugepages bigint,
    generation bigint,
    notes text[],
    crash_outlook text,
    boot_outlook text
);

CREATE FUNCTION hugepage_status() RETURNS SETOF hugepage_status_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_status_wrapper';

COMMENT ON FUNCTION hugepage_status() IS 'whether shared memory landed in huge pages, why not, and what to set';

CREATE VIEW hugepage_status AS
    SELECT * FROM hugepage_status();

REVOKE ALL ON FUNCTION hugepage_status() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_status() TO pg_monitor;
COMMENT ON TYPE hugepage_status_row IS 'a row of hugepage_status';
REVOKE ALL ON hugepage_status FROM PUBLIC;
GRANT SELECT ON hugepage_status TO pg_monitor;
COMMENT ON VIEW hugepage_status IS 'whether shared memory landed in huge pages, why not, and what to set';
COMMENT ON COLUMN hugepage_status.verdict IS 'severity of the most severe finding: ok, notice, warning or critical';
COMMENT ON COLUMN hugepage_status.message IS 'the state in one sentence';
COMMENT ON COLUMN hugepage_status.hint IS 'what to do, and which servers its number counts; NULL if nothing';
COMMENT ON COLUMN hugepage_status.shared_buffers_in_huge_pages IS 'whether shared_buffers is in huge pages of the pool, not in transparent ones';
COMMENT ON COLUMN hugepage_status.landed_in IS 'the pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed';
COMMENT ON COLUMN hugepage_status.mapping IS 'the kernel''s name of the mapping: anon_hugepage, zero, SYSV...; for Oracle of the largest segment';
COMMENT ON COLUMN hugepage_status.page_size IS 'page size of the mapping, in bytes; for a mixed SGA the huge page size';
COMMENT ON COLUMN hugepage_status.cause IS 'why shared memory is not in the pages that were requested; NULL if it is';
COMMENT ON COLUMN hugepage_status.shared_buffers IS 'size of the buffer pool, in bytes';
COMMENT ON COLUMN hugepage_status.shared_memory IS 'size of the main segment, in bytes; for Oracle of the whole SGA';
COMMENT ON COLUMN hugepage_status.huge_pages IS 'the setting in effect';
COMMENT ON COLUMN hugepage_status.huge_page_size IS 'the huge page size in effect, in bytes; the columns of the pool are for this size';
COMMENT ON COLUMN hugepage_status.pages_needed IS 'huge pages that the running segment has or would need';
COMMENT ON COLUMN hugepage_status.pages_missing IS 'needed pages that are not available now; 0 in huge pages';
COMMENT ON COLUMN hugepage_status.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_status.free_hugepages IS 'free pages, reserved ones included';
COMMENT ON COLUMN hugepage_status.resv_hugepages IS 'free pages that are reserved';
COMMENT ON COLUMN hugepage_status.surplus_hugepages IS 'pages beyond the configured size, which the kernel frees after use';
COMMENT ON COLUMN hugepage_status.available_hugepages IS 'free pages that are not reserved';
COMMENT ON COLUMN hugepage_status.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_status.transparent_hugepage IS 'the kernel''s setting: always, madvise or never; NULL if it has none';
COMMENT ON COLUMN hugepage_status.restart_outlook IS 'what a start with the configuration on disk would get: hugetlb, base, fails or unknown; for Oracle also mixed';
COMMENT ON COLUMN hugepage_status.recommended_nr_hugepages IS 'recommended pages in the pool, for this server and all others that are seen; never less than the pool has';
COMMENT ON COLUMN hugepage_status.generation IS 'how often this postmaster has allocated shared memory; NULL if the library is not preloaded';
COMMENT ON COLUMN hugepage_status.notes IS 'what could not be read, and why';
COMMENT ON COLUMN hugepage_status.crash_outlook IS 'like restart_outlook, for the restart after a crash of one process, with the running settings';
COMMENT ON COLUMN hugepage_status.boot_outlook IS 'like restart_outlook, for the first start after the next boot; NULL if the library is not preloaded';
