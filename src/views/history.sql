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
