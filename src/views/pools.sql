CREATE FUNCTION hugepage_pools() RETURNS SETOF hugepage_pools_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();
