CREATE FUNCTION hugepage_host() RETURNS SETOF hugepage_host_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 50
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and numbers that affect huge pages';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();
