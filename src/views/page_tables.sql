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
