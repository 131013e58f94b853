ALTER FUNCTION hugepage_preflight() ROWS 1;
ALTER FUNCTION hugepage_what_if(bigint, integer, bigint) ROWS 1;

REVOKE ALL ON FUNCTION hugepage_preflight() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugepage_what_if(bigint, integer, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_preflight() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_what_if(bigint, integer, bigint) TO pg_monitor;

COMMENT ON FUNCTION hugepage_preflight() IS 'what a start with the configuration on disk would get; runs the server''s program';
COMMENT ON FUNCTION hugepage_what_if(bigint, integer, bigint) IS 'what a start with other values would get: shared_buffers and huge_page_size in bytes, NULL for the value on disk';
