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
