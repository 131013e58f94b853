CREATE FUNCTION hugepage_library_version(needed text DEFAULT NULL) RETURNS text
    IMMUTABLE PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_library_version_wrapper';

-- Every upgrade script begins with this statement too.
SELECT hugepage_library_version(needed => extversion)
FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_hugepages';

REVOKE ALL ON FUNCTION hugepage_library_version(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_library_version(text) TO pg_monitor;
COMMENT ON FUNCTION hugepage_library_version(text) IS 'version of the library that this server runs; raises an error if it is older than the version needed';
