CREATE FUNCTION hugepage_host() RETURNS TABLE (
    name text, -- name of the setting or line in the kernel
    setting text, -- its value; NULL if lxcfs shows that of a container
    unit text, -- bytes, kB, pages, % or NULL
    source text -- the file that the value was read from
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 50
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_host_wrapper';

COMMENT ON FUNCTION hugepage_host() IS 'the kernel''s settings and numbers that affect huge pages';

CREATE VIEW hugepage_host AS
    SELECT * FROM hugepage_host();
