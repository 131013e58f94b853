-- Complain if the script is sourced in psql.
\echo Use "CREATE EXTENSION pg_hugepages" to load this file. \quit

-- src/library.sql
CREATE FUNCTION hugepage_library_version(needed text DEFAULT NULL) RETURNS text
    STABLE PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_library_version_wrapper';

-- Every upgrade script begins with this statement too.
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
        'hugepage_backends', 'hugepage_benefit', 'hugepage_findings', 'hugepage_fix', 'hugepage_history', 'hugepage_host',
        'hugepage_library_version', 'hugepage_metrics', 'hugepage_nodes', 'hugepage_page_tables', 'hugepage_pools',
        'hugepage_preflight', 'hugepage_recommendations', 'hugepage_segments', 'hugepage_segments_detail', 'hugepage_status',
        'hugepage_what_if'
    ]::pg_catalog.name[]);

DROP FUNCTION hugepage_refuse_overloads(text);

REVOKE ALL ON FUNCTION hugepage_library_version(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_library_version(text) TO pg_monitor;
COMMENT ON FUNCTION hugepage_library_version(text) IS 'version of the library that this server runs; raises an error if it is older than the version needed';

-- src/views/backends.sql
CREATE FUNCTION hugepage_backends() RETURNS TABLE (
    pid integer, backend_type text, datid oid, usesysid oid, application_name text, state text,
    backend_start timestamp with time zone, page_tables bigint, rss_shmem bigint, rss_anon bigint, rss_file bigint,
    swap bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_backends_wrapper';

CREATE VIEW hugepage_backends AS
    SELECT b.pid, b.backend_type, d.datname, r.rolname AS usename, b.application_name, b.state, b.backend_start,
           b.page_tables, b.rss_shmem, b.rss_anon, b.rss_file, b.swap
    FROM hugepage_backends() b
    LEFT JOIN pg_database d ON d.oid = b.datid
    LEFT JOIN pg_authid r ON r.oid = b.usesysid;

ALTER FUNCTION hugepage_backends() ROWS 100;

REVOKE ALL ON FUNCTION hugepage_backends() FROM PUBLIC;
REVOKE ALL ON hugepage_backends FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_backends() TO pg_monitor;
GRANT SELECT ON hugepage_backends TO pg_monitor;

COMMENT ON FUNCTION hugepage_backends() IS 'the processes of this server, with the memory of each';
COMMENT ON VIEW hugepage_backends IS 'the processes of this server, with the memory of each';
COMMENT ON COLUMN hugepage_backends.pid IS 'process id; the postmaster has a row too';
COMMENT ON COLUMN hugepage_backends.backend_type IS 'as in pg_stat_activity; also postmaster and logger (syslogger from 19 on); NULL for a background worker without a database connection';
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

-- src/views/benefit.sql
CREATE FUNCTION hugepage_benefit(duration interval DEFAULT '10 s') RETURNS TABLE (
    figure text, unit text, base double precision, huge_2mb double precision, huge_1gb double precision,
    confidence text, detail text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_benefit_wrapper';

ALTER FUNCTION hugepage_benefit(interval) ROWS 9;

REVOKE ALL ON FUNCTION hugepage_benefit(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_benefit(interval) TO pg_monitor;

COMMENT ON FUNCTION hugepage_benefit(interval) IS 'what huge pages would save, from page faults and page tables observed for that time; waits';

-- src/views/findings.sql
CREATE FUNCTION hugepage_findings() RETURNS TABLE (
    finding text, severity text, message text, hint text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

ALTER FUNCTION hugepage_findings() ROWS 3;

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
GRANT SELECT ON hugepage_findings TO pg_monitor;

COMMENT ON FUNCTION hugepage_findings() IS 'what was found about this server and its kernel, each with its severity and what to do; empty if all is as requested';
COMMENT ON VIEW hugepage_findings IS 'what was found about this server and its kernel, each with its severity and what to do, the most severe first; empty if all is as requested';
COMMENT ON COLUMN hugepage_findings.finding IS 'name of the finding, such as restart_loses; see docs/verdicts.md';
COMMENT ON COLUMN hugepage_findings.severity IS 'notice, warning or critical; NULL if it is not known whether a kernel advisory applies';
COMMENT ON COLUMN hugepage_findings.message IS 'one sentence on the state; of a kernel advisory what it says, and its source';
COMMENT ON COLUMN hugepage_findings.hint IS 'the steps that help, NULL if there are none';

-- src/views/fix.sql
CREATE FUNCTION hugepage_fix(target text) RETURNS text
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_fix_wrapper';

REVOKE ALL ON FUNCTION hugepage_fix(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_fix(text) TO pg_monitor;

COMMENT ON FUNCTION hugepage_fix(text) IS 'the recommended change as a complete script or file, for sysctl, systemd, grub, postgresql, ansible, kubernetes, cloudnativepg, pgo or zalando';

-- src/views/history.sql
CREATE FUNCTION hugepage_history() RETURNS TABLE (
    recorded_at timestamp with time zone, event text, generation bigint, postmaster_start timestamp with time zone,
    server_version text, host text, boot_id text, landed_in text, page_size bigint, shared_memory bigint,
    pages_needed bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint, surplus_hugepages bigint,
    page_tables bigint, restart_outlook text, cause text, regression boolean, detail text,
    was_recorded_at timestamp with time zone, was_landed_in text, was_page_size bigint, was_restart_outlook text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_history_wrapper';

CREATE VIEW hugepage_history AS
    SELECT recorded_at, event, generation, postmaster_start, server_version, host, boot_id, landed_in, page_size,
           shared_memory, pages_needed, nr_hugepages, free_hugepages, resv_hugepages, surplus_hugepages, page_tables,
           restart_outlook, cause, regression, detail
    FROM hugepage_history();

CREATE VIEW hugepage_regressions AS
    SELECT recorded_at, event, generation, host, was_recorded_at, was_landed_in, landed_in, was_page_size, page_size,
           was_restart_outlook, restart_outlook, cause, pages_needed, nr_hugepages, detail
    FROM hugepage_history()
    WHERE regression;

ALTER FUNCTION hugepage_history() ROWS 1000;

REVOKE ALL ON FUNCTION hugepage_history() FROM PUBLIC;
REVOKE ALL ON hugepage_history, hugepage_regressions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_history() TO pg_monitor;
GRANT SELECT ON hugepage_history, hugepage_regressions TO pg_monitor;

COMMENT ON FUNCTION hugepage_history() IS 'starts and state changes of this cluster on this machine; recorded if the library is preloaded';
COMMENT ON VIEW hugepage_history IS 'starts and state changes of this cluster on this machine, the oldest first; recorded if the library is preloaded';
COMMENT ON COLUMN hugepage_history.recorded_at IS 'time of the record';
COMMENT ON COLUMN hugepage_history.event IS 'start, crash restart, change, reload or resize';
COMMENT ON COLUMN hugepage_history.generation IS 'number of allocations of shared memory by that postmaster';
COMMENT ON COLUMN hugepage_history.postmaster_start IS 'start of the postmaster process';
COMMENT ON COLUMN hugepage_history.server_version IS 'version of the server';
COMMENT ON COLUMN hugepage_history.host IS 'name of the host';
COMMENT ON COLUMN hugepage_history.boot_id IS 'the kernel''s identifier of the boot';
COMMENT ON COLUMN hugepage_history.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_history.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_history.shared_memory IS 'size of the main segment, in bytes';
COMMENT ON COLUMN hugepage_history.pages_needed IS 'huge pages that the segment needed';
COMMENT ON COLUMN hugepage_history.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_history.free_hugepages IS 'pages of the pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_history.resv_hugepages IS 'free pages that are reserved for a mapping';
COMMENT ON COLUMN hugepage_history.surplus_hugepages IS 'pages allocated beyond the configured size of the pool';
COMMENT ON COLUMN hugepage_history.page_tables IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_history.restart_outlook IS 'pages that the next start would have landed in';
COMMENT ON COLUMN hugepage_history.cause IS 'why shared memory was not in the pages that were asked for; NULL if it was';
COMMENT ON COLUMN hugepage_history.regression IS 'whether the record is worse than the one before it of this cluster on this machine';
COMMENT ON COLUMN hugepage_history.detail IS 'what regressed or changed';

COMMENT ON VIEW hugepage_regressions IS 'regressions of this cluster, each with the state before it';
COMMENT ON COLUMN hugepage_regressions.recorded_at IS 'time of the record';
COMMENT ON COLUMN hugepage_regressions.event IS 'start, crash restart, change, reload or resize';
COMMENT ON COLUMN hugepage_regressions.generation IS 'number of allocations of shared memory by that postmaster';
COMMENT ON COLUMN hugepage_regressions.host IS 'name of the host';
COMMENT ON COLUMN hugepage_regressions.was_recorded_at IS 'time of the record before';
COMMENT ON COLUMN hugepage_regressions.was_landed_in IS 'pages that shared memory was in before';
COMMENT ON COLUMN hugepage_regressions.landed_in IS 'pages that shared memory was in then';
COMMENT ON COLUMN hugepage_regressions.was_page_size IS 'page size of the mapping before, in bytes';
COMMENT ON COLUMN hugepage_regressions.page_size IS 'page size of the mapping then, in bytes';
COMMENT ON COLUMN hugepage_regressions.was_restart_outlook IS 'pages that the next start would have landed in before';
COMMENT ON COLUMN hugepage_regressions.restart_outlook IS 'pages that the next start would have landed in then';
COMMENT ON COLUMN hugepage_regressions.cause IS 'why shared memory was not in the pages that were asked for';
COMMENT ON COLUMN hugepage_regressions.pages_needed IS 'huge pages that the segment needed';
COMMENT ON COLUMN hugepage_regressions.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_regressions.detail IS 'what regressed, and what changed with it';

-- src/views/host.sql
CREATE FUNCTION hugepage_host() RETURNS TABLE (
    name text, setting text, unit text, source text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();

ALTER FUNCTION hugepage_host() ROWS 50;

REVOKE ALL ON FUNCTION hugepage_host() FROM PUBLIC;
REVOKE ALL ON hugepage_host FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_host() TO pg_monitor;
GRANT SELECT ON hugepage_host TO pg_monitor;

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and counters that affect huge pages';
COMMENT ON VIEW hugepage_host IS 'the kernel''s settings and counters that affect huge pages';
COMMENT ON COLUMN hugepage_host.name IS 'the kernel''s name of the setting or counter';
COMMENT ON COLUMN hugepage_host.setting IS 'its value; NULL where lxcfs shows that of a container';
COMMENT ON COLUMN hugepage_host.unit IS 'bytes, kB, pages, events, % or NULL';
COMMENT ON COLUMN hugepage_host.source IS 'the file that the value was read from';

-- src/views/metrics.sql
CREATE FUNCTION hugepage_metrics() RETURNS text
    VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_metrics_wrapper';

REVOKE ALL ON FUNCTION hugepage_metrics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_metrics() TO pg_monitor;

COMMENT ON FUNCTION hugepage_metrics() IS 'metrics of this server and its host as OpenMetrics text, for example for node_exporter';

-- src/views/nodes.sql
CREATE FUNCTION hugepage_nodes() RETURNS TABLE (
    node integer, page_size bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint,
    surplus_hugepages bigint, memory bigint, segment_pages bigint, allowed boolean, restart_pages bigint, notice text,
    command text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();

ALTER FUNCTION hugepage_nodes() ROWS 2;

REVOKE ALL ON FUNCTION hugepage_nodes() FROM PUBLIC;
REVOKE ALL ON hugepage_nodes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_nodes() TO pg_monitor;
GRANT SELECT ON hugepage_nodes TO pg_monitor;

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool, pages of shared memory, and what a restart would find; touches no page';
COMMENT ON VIEW hugepage_nodes IS 'the NUMA nodes of this host: pool, pages of shared memory, and what a restart would find; touches no page';
COMMENT ON COLUMN hugepage_nodes.node IS 'NUMA node';
COMMENT ON COLUMN hugepage_nodes.page_size IS 'page size of the pool that this server uses or would use, in bytes';
COMMENT ON COLUMN hugepage_nodes.nr_hugepages IS 'pages in the node''s pool, surplus included';
COMMENT ON COLUMN hugepage_nodes.free_hugepages IS 'pages of the node''s pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_nodes.resv_hugepages IS 'free pages that are reserved for a mapping; NULL if there are several nodes: the kernel counts them for the host';
COMMENT ON COLUMN hugepage_nodes.surplus_hugepages IS 'pages allocated beyond the configured size of the node''s pool; freed after use';
COMMENT ON COLUMN hugepage_nodes.memory IS 'memory of the node, in bytes';
COMMENT ON COLUMN hugepage_nodes.segment_pages IS 'huge pages of the main segment that are on the node, each counted once; 0 in base pages, NULL if the kernel does not say';
COMMENT ON COLUMN hugepage_nodes.allowed IS 'whether the cpuset and the memory policy of this server allow the node; NULL if unknown';
COMMENT ON COLUMN hugepage_nodes.restart_pages IS 'pages that a restart of this server would find on the node; 0 if it is not allowed, NULL if that depends on pages of other processes';
COMMENT ON COLUMN hugepage_nodes.notice IS 'what is uneven about the node, NULL if nothing is';
COMMENT ON COLUMN hugepage_nodes.command IS 'the command that evens it, NULL if there is none';

-- src/views/page_tables.sql
CREATE FUNCTION hugepage_page_tables() RETURNS TABLE (
    processes bigint, page_tables_total bigint, page_tables_max bigint, page_tables_host bigint, memory_total bigint,
    share_of_memory double precision, estimated_on_huge_pages bigint, saving bigint, estimated_at_max_connections bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_page_tables_wrapper';

CREATE VIEW hugepage_page_tables AS
    SELECT * FROM hugepage_page_tables();

ALTER FUNCTION hugepage_page_tables() ROWS 1;

REVOKE ALL ON FUNCTION hugepage_page_tables() FROM PUBLIC;
REVOKE ALL ON hugepage_page_tables FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_page_tables() TO pg_monitor;
GRANT SELECT ON hugepage_page_tables TO pg_monitor;

COMMENT ON FUNCTION hugepage_page_tables() IS 'page tables of this server, and an estimate of what huge pages would save';
COMMENT ON VIEW hugepage_page_tables IS 'page tables of this server, and an estimate of what huge pages would save';
COMMENT ON COLUMN hugepage_page_tables.processes IS 'number of processes of this server, the postmaster included';
COMMENT ON COLUMN hugepage_page_tables.page_tables_total IS 'page tables of all these processes, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_max IS 'largest page tables of one process, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.memory_total IS 'memory of the host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.share_of_memory IS 'page_tables_total / memory_total, from 0 to 1';
COMMENT ON COLUMN hugepage_page_tables.estimated_on_huge_pages IS 'estimate of page_tables_total with shared memory in huge pages, in bytes';
COMMENT ON COLUMN hugepage_page_tables.saving IS 'lower bound of what huge pages would free, in bytes';
COMMENT ON COLUMN hugepage_page_tables.estimated_at_max_connections IS 'page tables of max_connections backends that have accessed all of shared memory in its current pages, in bytes';

-- src/views/pools.sql
CREATE FUNCTION hugepage_pools() RETURNS TABLE (
    page_size bigint, node integer, is_default boolean, nr_hugepages bigint, free_hugepages bigint,
    resv_hugepages bigint, surplus_hugepages bigint, nr_overcommit_hugepages bigint, available bigint,
    cgroup_limit bigint, cgroup_usage bigint, obtainable_now bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();

ALTER FUNCTION hugepage_pools() ROWS 4;

REVOKE ALL ON FUNCTION hugepage_pools() FROM PUBLIC;
REVOKE ALL ON hugepage_pools FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_pools() TO pg_monitor;
GRANT SELECT ON hugepage_pools TO pg_monitor;

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size and NUMA node';
COMMENT ON VIEW hugepage_pools IS 'the huge page pools of this host, by page size and NUMA node';
COMMENT ON COLUMN hugepage_pools.page_size IS 'page size of the pool, in bytes';
COMMENT ON COLUMN hugepage_pools.node IS 'NUMA node, NULL for the whole host';
COMMENT ON COLUMN hugepage_pools.is_default IS 'whether it is the default page size, for mappings that ask for no size';
COMMENT ON COLUMN hugepage_pools.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_pools.free_hugepages IS 'pages of the pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_pools.resv_hugepages IS 'free pages that are reserved for a mapping; NULL for a node';
COMMENT ON COLUMN hugepage_pools.surplus_hugepages IS 'pages allocated beyond the configured size of the pool; freed after use';
COMMENT ON COLUMN hugepage_pools.nr_overcommit_hugepages IS 'surplus pages that the kernel may allocate; NULL for a node';
COMMENT ON COLUMN hugepage_pools.available IS 'free pages that are not reserved; NULL for a node';
COMMENT ON COLUMN hugepage_pools.cgroup_limit IS 'the cgroup limit that leaves the least, in bytes; NULL if none is visible';
COMMENT ON COLUMN hugepage_pools.cgroup_usage IS 'usage that counts against cgroup_limit, in bytes';
COMMENT ON COLUMN hugepage_pools.obtainable_now IS 'pages that the kernel could still allocate from free memory without compaction; NULL if the page size is too large to estimate';

-- src/views/preflight.sql
CREATE FUNCTION hugepage_preflight() RETURNS TABLE (
    will_start boolean, lands_in text, page_size bigint, shared_memory bigint, pages_needed bigint,
    pages_guaranteed bigint, pages_missing bigint, cause text, detail text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

CREATE FUNCTION hugepage_what_if(
    shared_buffers bigint DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size bigint DEFAULT NULL
) RETURNS TABLE (
    will_start boolean, lands_in text, page_size bigint, shared_memory bigint, pages_needed bigint,
    pages_guaranteed bigint, pages_missing bigint, cause text, detail text, page_tables_base bigint,
    page_tables_huge bigint
)
    VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_what_if_wrapper';

ALTER FUNCTION hugepage_preflight() ROWS 1;
ALTER FUNCTION hugepage_what_if(bigint, integer, bigint) ROWS 1;

REVOKE ALL ON FUNCTION hugepage_preflight() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugepage_what_if(bigint, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_preflight() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_what_if(bigint, integer, bigint) TO pg_monitor;

COMMENT ON FUNCTION hugepage_preflight() IS 'what a start with the configuration on disk would get; runs the server''s program';
COMMENT ON FUNCTION hugepage_what_if(bigint, integer, bigint) IS 'what a start with other values would get: shared_buffers and huge_page_size in bytes, NULL for the value on disk';

-- src/views/recommendations.sql
CREATE FUNCTION hugepage_recommendations() RETURNS TABLE (
    priority integer, severity text, area text, setting text, current text, recommended text, reason text, command text,
    takes_effect text, saves bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();

ALTER FUNCTION hugepage_recommendations() ROWS 10;

REVOKE ALL ON FUNCTION hugepage_recommendations() FROM PUBLIC;
REVOKE ALL ON hugepage_recommendations FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_recommendations() TO pg_monitor;
GRANT SELECT ON hugepage_recommendations TO pg_monitor;

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON VIEW hugepage_recommendations IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON COLUMN hugepage_recommendations.priority IS '1 is the most urgent';
COMMENT ON COLUMN hugepage_recommendations.severity IS 'notice, warning or critical';
COMMENT ON COLUMN hugepage_recommendations.area IS 'postgresql, kernel, boot, limits, cgroup or node';
COMMENT ON COLUMN hugepage_recommendations.setting IS 'the setting to change';
COMMENT ON COLUMN hugepage_recommendations.current IS 'its current value, NULL if none or unknown';
COMMENT ON COLUMN hugepage_recommendations.recommended IS 'the recommended value, NULL if no value would help';
COMMENT ON COLUMN hugepage_recommendations.reason IS 'the reason, with the numbers of this host';
COMMENT ON COLUMN hugepage_recommendations.command IS 'the command that sets it: SQL for the area postgresql, else for a root shell';
COMMENT ON COLUMN hugepage_recommendations.takes_effect IS 'when the change takes effect: now, server restart or reboot';
COMMENT ON COLUMN hugepage_recommendations.saves IS 'memory that it frees, in bytes; NULL if none or unknown';

-- src/views/segments.sql
CREATE FUNCTION hugepage_segments() RETURNS TABLE (
    segment text, mapping text, size bigint, page_size bigint, landed_in text, reserved bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

CREATE FUNCTION hugepage_segments_detail() RETURNS TABLE (
    segment text, mapping text, size bigint, page_size bigint, landed_in text, resident bigint, thp_mapped bigint,
    hugetlb bigint, reserved bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_detail_wrapper';

CREATE VIEW hugepage_segments AS
    SELECT * FROM hugepage_segments();

ALTER FUNCTION hugepage_segments() ROWS 4;
ALTER FUNCTION hugepage_segments_detail() ROWS 4;

REVOKE ALL ON FUNCTION hugepage_segments() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugepage_segments_detail() FROM PUBLIC;
REVOKE ALL ON hugepage_segments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_segments() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_segments_detail() TO pg_monitor;
GRANT SELECT ON hugepage_segments TO pg_monitor;

COMMENT ON FUNCTION hugepage_segments() IS 'the shared memory that this server process maps';
COMMENT ON FUNCTION hugepage_segments_detail() IS 'the shared memory that this server process maps, with its resident part; walks its page tables';
COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';
COMMENT ON COLUMN hugepage_segments.segment IS 'main, interlock, dynamic or other';
COMMENT ON COLUMN hugepage_segments.mapping IS 'the kernel''s name of the mapping';
COMMENT ON COLUMN hugepage_segments.size IS 'memory of the mapping that this process may access, in bytes';
COMMENT ON COLUMN hugepage_segments.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_segments.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_segments.reserved IS 'address space of the mapping, in bytes: more than size if the server may resize it';

-- src/views/status.sql
CREATE FUNCTION hugepage_status() RETURNS TABLE (
    verdict text, message text, hint text, shared_buffers_in_huge_pages boolean, landed_in text, mapping text,
    page_size bigint, cause text, shared_buffers bigint, shared_memory bigint, huge_pages text, huge_page_size bigint,
    pages_needed bigint, pages_missing bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint,
    surplus_hugepages bigint, available_hugepages bigint, page_tables bigint, transparent_hugepage text,
    restart_outlook text, recommended_nr_hugepages bigint, generation bigint, notes text[], crash_outlook text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_status_wrapper';

CREATE VIEW hugepage_status AS
    SELECT * FROM hugepage_status();

ALTER FUNCTION hugepage_status() ROWS 1;

REVOKE ALL ON FUNCTION hugepage_status() FROM PUBLIC;
REVOKE ALL ON hugepage_status FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_status() TO pg_monitor;
GRANT SELECT ON hugepage_status TO pg_monitor;

COMMENT ON FUNCTION hugepage_status() IS 'whether shared memory landed in huge pages, why not, and what to set';
COMMENT ON VIEW hugepage_status IS 'whether shared memory landed in huge pages, why not, and what to set';
COMMENT ON COLUMN hugepage_status.verdict IS 'ok, notice, warning or critical';
COMMENT ON COLUMN hugepage_status.message IS 'the state, one sentence';
COMMENT ON COLUMN hugepage_status.hint IS 'what to do, one sentence; NULL if nothing';
COMMENT ON COLUMN hugepage_status.shared_buffers_in_huge_pages IS 'whether the mapping that holds shared_buffers is in hugetlb pages, NULL if unknown';
COMMENT ON COLUMN hugepage_status.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_status.mapping IS 'the kernel''s name of the mapping: anon_hugepage, zero, SYSV...';
COMMENT ON COLUMN hugepage_status.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_status.cause IS 'why shared memory is not in the pages that were asked for; NULL if it is';
COMMENT ON COLUMN hugepage_status.shared_buffers IS 'size of the buffer pool, in bytes';
COMMENT ON COLUMN hugepage_status.shared_memory IS 'size of the main segment, in bytes';
COMMENT ON COLUMN hugepage_status.huge_pages IS 'value of the setting huge_pages';
COMMENT ON COLUMN hugepage_status.huge_page_size IS 'the huge page size in effect, in bytes';
COMMENT ON COLUMN hugepage_status.pages_needed IS 'huge pages that the running segment needs';
COMMENT ON COLUMN hugepage_status.pages_missing IS 'of these, pages that are not available now; 0 if it landed in huge pages';
COMMENT ON COLUMN hugepage_status.nr_hugepages IS 'pages in the host''s pool of that page size, surplus included';
COMMENT ON COLUMN hugepage_status.free_hugepages IS 'pages of the pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_status.resv_hugepages IS 'free pages that are reserved for a mapping';
COMMENT ON COLUMN hugepage_status.surplus_hugepages IS 'pages allocated beyond the configured size of the pool; freed after use';
COMMENT ON COLUMN hugepage_status.available_hugepages IS 'free pages that are not reserved';
COMMENT ON COLUMN hugepage_status.page_tables IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_status.transparent_hugepage IS 'transparent huge pages: always, madvise or never; NULL if the kernel has none';
COMMENT ON COLUMN hugepage_status.restart_outlook IS 'what a restart with the configuration on disk would land in: hugetlb, base, fails or unknown';
COMMENT ON COLUMN hugepage_status.recommended_nr_hugepages IS 'recommended size of the host''s pool, in pages: what this server needs and others hold, never less than the pool has';
COMMENT ON COLUMN hugepage_status.generation IS 'number of allocations of shared memory by this postmaster, NULL if the library is not preloaded';
COMMENT ON COLUMN hugepage_status.notes IS 'what could not be read, and why';
COMMENT ON COLUMN hugepage_status.crash_outlook IS 'what the restart after a crash of one process would land in, with the running settings: hugetlb, base, fails or unknown';
