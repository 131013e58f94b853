CREATE FUNCTION hugepage_history() RETURNS TABLE (
    recorded_at timestamp with time zone, event text, generation bigint, postmaster_start timestamp with time zone,
    server_version text, host text, boot_id text, landed_in text, page_size bigint, shared_memory bigint,
    pages_needed bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint, surplus_hugepages bigint,
    page_tables_host bigint, restart_outlook text, cause text, regression boolean, detail text,
    was_recorded_at timestamp with time zone, was_landed_in text, was_page_size bigint, was_restart_outlook text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_history_wrapper';

CREATE VIEW hugepage_history AS
    SELECT * FROM hugepage_history();

ALTER FUNCTION hugepage_history() ROWS 1000;

REVOKE ALL ON FUNCTION hugepage_history() FROM PUBLIC;
REVOKE ALL ON hugepage_history FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_history() TO pg_monitor;
GRANT SELECT ON hugepage_history TO pg_monitor;

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
COMMENT ON COLUMN hugepage_history.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_history.restart_outlook IS 'pages that the next start would have landed in';
COMMENT ON COLUMN hugepage_history.cause IS 'why shared memory was not in the pages that were asked for; NULL if it was';
COMMENT ON COLUMN hugepage_history.regression IS 'whether the record is worse than the one before it of this cluster on this machine';
COMMENT ON COLUMN hugepage_history.detail IS 'what regressed or changed';
COMMENT ON COLUMN hugepage_history.was_recorded_at IS 'time of the better record before a regression; NULL for other records';
COMMENT ON COLUMN hugepage_history.was_landed_in IS 'pages that shared memory was in before a regression';
COMMENT ON COLUMN hugepage_history.was_page_size IS 'page size of the mapping before a regression, in bytes';
COMMENT ON COLUMN hugepage_history.was_restart_outlook IS 'pages that the next start would have landed in before a regression';
