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

COMMENT ON FUNCTION hugepage_history() IS 'starts and changes of state of this cluster on this machine, kept in its data directory while the library is preloaded';
COMMENT ON VIEW hugepage_history IS 'starts and changes of state of this cluster on this machine, the oldest first; kept while the library is preloaded';
COMMENT ON COLUMN hugepage_history.recorded_at IS 'when it was recorded';
COMMENT ON COLUMN hugepage_history.event IS 'start, crash restart, change or reload';
COMMENT ON COLUMN hugepage_history.generation IS 'allocations of shared memory by that postmaster';
COMMENT ON COLUMN hugepage_history.postmaster_start IS 'when the postmaster process started';
COMMENT ON COLUMN hugepage_history.server_version IS 'version of the server';
COMMENT ON COLUMN hugepage_history.host IS 'name of the host';
COMMENT ON COLUMN hugepage_history.boot_id IS 'the kernel''s identifier of that boot';
COMMENT ON COLUMN hugepage_history.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_history.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_history.shared_memory IS 'the whole main segment, in bytes';
COMMENT ON COLUMN hugepage_history.pages_needed IS 'huge pages that the segment had or would have taken';
COMMENT ON COLUMN hugepage_history.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_history.free_hugepages IS 'of these, not yet touched';
COMMENT ON COLUMN hugepage_history.resv_hugepages IS 'of the free ones, promised to a mapping';
COMMENT ON COLUMN hugepage_history.surplus_hugepages IS 'pages above what the pool was set to';
COMMENT ON COLUMN hugepage_history.page_tables IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_history.restart_outlook IS 'what the next start would have landed in';
COMMENT ON COLUMN hugepage_history.cause IS 'why it was not as asked, NULL if it was';
COMMENT ON COLUMN hugepage_history.regression IS 'whether something was lost against the record before of this cluster on this machine';
COMMENT ON COLUMN hugepage_history.detail IS 'what was lost or changed';

COMMENT ON VIEW hugepage_regressions IS 'what this cluster has lost and when, beside what there was before';
COMMENT ON COLUMN hugepage_regressions.recorded_at IS 'when the loss was recorded';
COMMENT ON COLUMN hugepage_regressions.event IS 'start, crash restart, change or reload';
COMMENT ON COLUMN hugepage_regressions.generation IS 'allocations of shared memory by that postmaster';
COMMENT ON COLUMN hugepage_regressions.host IS 'name of the host';
COMMENT ON COLUMN hugepage_regressions.was_recorded_at IS 'when the state before was recorded';
COMMENT ON COLUMN hugepage_regressions.was_landed_in IS 'where shared memory was before';
COMMENT ON COLUMN hugepage_regressions.landed_in IS 'where it was then';
COMMENT ON COLUMN hugepage_regressions.was_page_size IS 'its page size before, in bytes';
COMMENT ON COLUMN hugepage_regressions.page_size IS 'its page size then, in bytes';
COMMENT ON COLUMN hugepage_regressions.was_restart_outlook IS 'what the next start would have landed in before';
COMMENT ON COLUMN hugepage_regressions.restart_outlook IS 'what the next start would have landed in then';
COMMENT ON COLUMN hugepage_regressions.cause IS 'why it was not as asked';
COMMENT ON COLUMN hugepage_regressions.pages_needed IS 'huge pages that the segment had or would have taken';
COMMENT ON COLUMN hugepage_regressions.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_regressions.detail IS 'what was lost, and what changed with it';
