CREATE FUNCTION hugepage_status() RETURNS SETOF hugepage_status_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_status_wrapper';

COMMENT ON FUNCTION hugepage_status() IS 'whether shared memory landed in huge pages, why not, and what to set';

CREATE VIEW hugepage_status AS
    SELECT * FROM hugepage_status();
