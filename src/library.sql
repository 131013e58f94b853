CREATE FUNCTION hugepage_library_version(needed text DEFAULT NULL) RETURNS text
    STABLE PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_library_version_wrapper';

-- An older library that still runs is reported before a function that it lacks.
SELECT hugepage_library_version(needed => extversion)
FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'pg_hugepages';

-- Calls of a function with a user's overload beside it would be ambiguous, in the views below and later.
CREATE FUNCTION hugepage_refuse_overloads(functions text) RETURNS void STRICT
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_refuse_overloads_wrapper';

SELECT hugepage_refuse_overloads(functions => pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::pg_catalog.text, ', '))
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_extension e ON p.pronamespace OPERATOR(pg_catalog.=) e.extnamespace
WHERE e.extname OPERATOR(pg_catalog.=) 'pg_hugepages'
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid
            AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
            AND d.refobjid OPERATOR(pg_catalog.=) e.oid AND d.deptype OPERATOR(pg_catalog.=) 'e')
    AND p.proname OPERATOR(pg_catalog.=) ANY (ARRAY[
        'hugepage_backends', 'hugepage_findings', 'hugepage_history', 'hugepage_host', 'hugepage_library_version',
        'hugepage_nodes', 'hugepage_page_tables', 'hugepage_pools', 'hugepage_preflight', 'hugepage_recommendations',
        'hugepage_segments', 'hugepage_status'
    ]::pg_catalog.name[]);

DROP FUNCTION hugepage_refuse_overloads(text);

REVOKE ALL ON FUNCTION hugepage_library_version(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_library_version(text) TO pg_monitor;
COMMENT ON FUNCTION hugepage_library_version(text) IS 'version of the library that this server runs; raises an error if it is older than the version needed';
