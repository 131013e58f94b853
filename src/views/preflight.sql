CREATE FUNCTION hugepage_preflight() RETURNS TABLE (
    will_start boolean, lands_in text, page_size bigint, shared_memory bigint, pages_needed bigint,
    pages_guaranteed bigint, pages_missing bigint, cause text, detail text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

CREATE FUNCTION hugepage_what_if(
    shared_buffers bigint DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size bigint DEFAULT NULL
) RETURNS TABLE (
    will_start boolean, lands_in text, page_size bigint, shared_memory bigint, pages_needed bigint,
    pages_guaranteed bigint, pages_missing bigint, cause text, detail text, page_tables_base bigint,
    page_tables_huge bigint
)
    VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_what_if_wrapper';

ALTER FUNCTION hugepage_preflight() ROWS 1;
ALTER FUNCTION hugepage_what_if(bigint, integer, bigint) ROWS 1;

REVOKE ALL ON FUNCTION hugepage_preflight() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugepage_what_if(bigint, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_preflight() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_what_if(bigint, integer, bigint) TO pg_monitor;

COMMENT ON FUNCTION hugepage_preflight() IS 'what a start with the configuration on disk would get; runs the server''s program';
COMMENT ON FUNCTION hugepage_what_if(bigint, integer, bigint) IS 'what a start with other values would get: shared_buffers and huge_page_size in bytes, NULL for the value on disk';
