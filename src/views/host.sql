CREATE FUNCTION hugepage_host() RETURNS TABLE (
    name text, setting text, unit text, source text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();

ALTER FUNCTION hugepage_host() ROWS 50;

REVOKE ALL ON FUNCTION hugepage_host() FROM PUBLIC;
REVOKE ALL ON hugepage_host FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_host() TO pg_monitor;
GRANT SELECT ON hugepage_host TO pg_monitor;

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and counters that affect huge pages';
COMMENT ON VIEW hugepage_host IS 'the kernel''s settings and counters that affect huge pages';
COMMENT ON COLUMN hugepage_host.name IS 'the kernel''s name of the setting or counter';
COMMENT ON COLUMN hugepage_host.setting IS 'its value; NULL where lxcfs shows that of a container';
COMMENT ON COLUMN hugepage_host.unit IS 'bytes, kB, pages, events, % or NULL';
COMMENT ON COLUMN hugepage_host.source IS 'the file that the value was read from';
