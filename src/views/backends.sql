CREATE FUNCTION hugepage_backends() RETURNS TABLE (
    pid integer, backend_type text, datid oid, usesysid oid, application_name text, state text,
    backend_start timestamp with time zone, page_tables bigint, rss_shmem bigint, rss_anon bigint, rss_file bigint,
    swap bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_backends_wrapper';

CREATE VIEW hugepage_backends AS
    SELECT b.pid, b.backend_type, d.datname, r.rolname AS usename, b.application_name, b.state, b.backend_start,
           b.page_tables, b.rss_shmem, b.rss_anon, b.rss_file, b.swap
    FROM hugepage_backends() b
    LEFT JOIN pg_database d ON d.oid = b.datid
    LEFT JOIN pg_authid r ON r.oid = b.usesysid;

ALTER FUNCTION hugepage_backends() ROWS 100;

REVOKE ALL ON FUNCTION hugepage_backends() FROM PUBLIC;
REVOKE ALL ON hugepage_backends FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_backends() TO pg_monitor;
GRANT SELECT ON hugepage_backends TO pg_monitor;

COMMENT ON FUNCTION hugepage_backends() IS 'the processes of this server, with the memory of each';
COMMENT ON VIEW hugepage_backends IS 'the processes of this server, with the memory of each';
COMMENT ON COLUMN hugepage_backends.pid IS 'process id; the postmaster has a row too';
COMMENT ON COLUMN hugepage_backends.backend_type IS 'as in pg_stat_activity; also postmaster and logger (syslogger from 19 on); NULL for a background worker without a database connection';
COMMENT ON COLUMN hugepage_backends.datname IS 'its database, NULL if it has none';
COMMENT ON COLUMN hugepage_backends.usename IS 'its role, NULL if it has none';
COMMENT ON COLUMN hugepage_backends.application_name IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.state IS 'as in pg_stat_activity';
COMMENT ON COLUMN hugepage_backends.backend_start IS 'when the process started';
COMMENT ON COLUMN hugepage_backends.page_tables IS 'VmPTE: its page tables, in bytes; NULL if unreadable';
COMMENT ON COLUMN hugepage_backends.rss_shmem IS 'RssShmem: its resident shared memory without hugetlb pages, in bytes';
COMMENT ON COLUMN hugepage_backends.rss_anon IS 'RssAnon: its resident private memory, in bytes';
COMMENT ON COLUMN hugepage_backends.rss_file IS 'RssFile: its resident file pages, in bytes';
COMMENT ON COLUMN hugepage_backends.swap IS 'VmSwap: its private memory that is swapped out, in bytes';
