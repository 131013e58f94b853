CREATE FUNCTION hugepage_page_tables() RETURNS SETOF hugepage_page_tables_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_page_tables_wrapper';

COMMENT ON FUNCTION hugepage_page_tables() IS 'page tables of this server, and an estimate of what huge pages would save';

CREATE VIEW hugepage_page_tables AS
    SELECT * FROM hugepage_page_tables();
