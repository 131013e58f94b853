CREATE FUNCTION hugepage_pools() RETURNS TABLE (
    page_size bigint, is_default boolean, nr_hugepages bigint, free_hugepages bigint,
    resv_hugepages bigint, surplus_hugepages bigint, nr_overcommit_hugepages bigint, available_hugepages bigint,
    cgroup_limit bigint, cgroup_usage bigint, obtainable_now bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();

ALTER FUNCTION hugepage_pools() ROWS 2;

REVOKE ALL ON FUNCTION hugepage_pools() FROM PUBLIC;
REVOKE ALL ON hugepage_pools FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_pools() TO pg_monitor;
GRANT SELECT ON hugepage_pools TO pg_monitor;

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size';
COMMENT ON VIEW hugepage_pools IS 'the huge page pools of this host, by page size';
COMMENT ON COLUMN hugepage_pools.page_size IS 'page size of the pool, in bytes';
COMMENT ON COLUMN hugepage_pools.is_default IS 'whether it is the default page size, for mappings that ask for no size';
COMMENT ON COLUMN hugepage_pools.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_pools.free_hugepages IS 'pages of the pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_pools.resv_hugepages IS 'free pages that are reserved for a mapping';
COMMENT ON COLUMN hugepage_pools.surplus_hugepages IS 'pages allocated beyond the configured size of the pool; freed after use';
COMMENT ON COLUMN hugepage_pools.nr_overcommit_hugepages IS 'surplus pages that the kernel may allocate';
COMMENT ON COLUMN hugepage_pools.available_hugepages IS 'free pages that are not reserved';
COMMENT ON COLUMN hugepage_pools.cgroup_limit IS 'the cgroup limit that leaves the least, in bytes; NULL if none is visible';
COMMENT ON COLUMN hugepage_pools.cgroup_usage IS 'usage that counts against cgroup_limit, in bytes';
COMMENT ON COLUMN hugepage_pools.obtainable_now IS 'pages that the kernel could still allocate from free memory without compaction; NULL if the page size is too large to estimate';
