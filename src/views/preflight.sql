CREATE FUNCTION hugepage_preflight(
    shared_buffers text DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size text DEFAULT NULL
) RETURNS SETOF hugepage_preflight_row
    VOLATILE PARALLEL UNSAFE COST 100000 ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

COMMENT ON FUNCTION hugepage_preflight(text, integer, text) IS 'what a start would get with the configuration on disk, or with other values, written as in postgresql.conf; runs the server''s program';
