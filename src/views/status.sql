CREATE FUNCTION hugepage_status() RETURNS TABLE (
    verdict text, message text, hint text, shared_buffers_in_huge_pages boolean, landed_in text, mapping text,
    page_size bigint, cause text, shared_buffers bigint, shared_memory bigint, huge_pages text, huge_page_size bigint,
    pages_needed bigint, pages_missing bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint,
    surplus_hugepages bigint, available_hugepages bigint, page_tables_host bigint,
    transparent_hugepage text, restart_outlook text, recommended_nr_hugepages bigint, generation bigint, notes text[], crash_outlook text
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
COMMENT ON COLUMN hugepage_status.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_status.transparent_hugepage IS 'transparent huge pages: always, madvise or never; NULL if the kernel has none';
COMMENT ON COLUMN hugepage_status.restart_outlook IS 'what a restart with the configuration on disk would land in: hugetlb, base, fails or unknown';
COMMENT ON COLUMN hugepage_status.recommended_nr_hugepages IS 'recommended size of the host''s pool, in pages: what this server needs and others hold, never less than the pool has';
COMMENT ON COLUMN hugepage_status.generation IS 'number of allocations of shared memory by this postmaster, NULL if the library is not preloaded';
COMMENT ON COLUMN hugepage_status.notes IS 'what could not be read, and why';
COMMENT ON COLUMN hugepage_status.crash_outlook IS 'what the restart after a crash of one process would land in, with the running settings: hugetlb, base, fails or unknown';
