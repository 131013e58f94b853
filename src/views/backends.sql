CREATE FUNCTION hugepage_backends() RETURNS TABLE (
    pid integer, -- process id; the postmaster has a row, too
    backend_type text, -- as in pg_stat_activity, or postmaster or logger (syslogger from 19 on); NULL for a background worker without a database
    datid oid, -- its database, NULL if it has none
    usesysid oid, -- its role, NULL if it has none
    application_name text, -- as in pg_stat_activity
    state text, -- as in pg_stat_activity
    backend_start timestamp with time zone, -- when the process started
    page_tables bigint, -- VmPTE: its page tables, in bytes; NULL if unreadable
    rss_shmem bigint, -- RssShmem: its resident shared memory without hugetlb pages, in bytes
    rss_anon bigint, -- RssAnon: its resident private memory, in bytes
    rss_file bigint, -- RssFile: its resident file pages, in bytes
    swap bigint -- VmSwap: its private memory that is swapped out, in bytes
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_backends_wrapper';

COMMENT ON FUNCTION hugepage_backends() IS 'the processes of this server, with the memory of each';

CREATE VIEW hugepage_backends AS
    SELECT b.pid, b.backend_type, d.datname, r.rolname AS usename, b.application_name, b.state, b.backend_start,
           b.page_tables, b.rss_shmem, b.rss_anon, b.rss_file, b.swap
    FROM hugepage_backends() b
    LEFT JOIN pg_database d ON d.oid = b.datid
    LEFT JOIN pg_authid r ON r.oid = b.usesysid;
