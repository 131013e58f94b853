CREATE FUNCTION hugepage_nodes() RETURNS SETOF hugepage_nodes_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();
