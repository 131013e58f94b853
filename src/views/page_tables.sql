CREATE VIEW hugepage_page_tables AS
    SELECT * FROM hugepage_page_tables();

ALTER FUNCTION hugepage_page_tables() ROWS 1;

REVOKE ALL ON FUNCTION hugepage_page_tables() FROM PUBLIC;
REVOKE ALL ON hugepage_page_tables FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_page_tables() TO pg_monitor;
GRANT SELECT ON hugepage_page_tables TO pg_monitor;

COMMENT ON FUNCTION hugepage_page_tables() IS 'what base pages cost this server in page tables, and what huge pages would save';
COMMENT ON VIEW hugepage_page_tables IS 'what base pages cost this server in page tables, and what huge pages would save';
COMMENT ON COLUMN hugepage_page_tables.processes IS 'processes of this server, the postmaster included';
COMMENT ON COLUMN hugepage_page_tables.page_tables_total IS 'their page tables together, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_max IS 'the largest of them, in bytes';
COMMENT ON COLUMN hugepage_page_tables.page_tables_host IS 'page tables of the whole host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.memory_total IS 'memory of the host, in bytes';
COMMENT ON COLUMN hugepage_page_tables.share_of_memory IS 'page_tables_total as a part of memory_total, from 0 to 1';
COMMENT ON COLUMN hugepage_page_tables.estimated_on_huge_pages IS 'what would remain of page_tables_total in huge pages, in bytes';
COMMENT ON COLUMN hugepage_page_tables.saving IS 'what would certainly go of it, in bytes';
COMMENT ON COLUMN hugepage_page_tables.estimated_at_max_connections IS 'page tables of max_connections backends that have touched all of shared memory as it is mapped now, in bytes';
