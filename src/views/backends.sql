CREATE FUNCTION hugepage_backends() RETURNS SETOF hugepage_backends_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_backends_wrapper';

COMMENT ON FUNCTION hugepage_backends() IS 'the processes of this server, with the memory of each';

CREATE VIEW hugepage_backends AS
    SELECT b.pid, b.backend_type, d.datname, r.rolname AS usename, b.application_name, b.state, b.backend_start,
           b.page_tables, b.rss_shmem, b.rss_anon, b.rss_file, b.swap
    FROM hugepage_backends() b
    LEFT JOIN pg_database d ON d.oid = b.datid
    LEFT JOIN pg_authid r ON r.oid = b.usesysid;
