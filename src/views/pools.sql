CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();

ALTER FUNCTION hugepage_pools() ROWS 4;

REVOKE ALL ON FUNCTION hugepage_pools() FROM PUBLIC;
REVOKE ALL ON hugepage_pools FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_pools() TO pg_monitor;
GRANT SELECT ON hugepage_pools TO pg_monitor;

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size and NUMA node';
COMMENT ON VIEW hugepage_pools IS 'the huge page pools of this host, by page size and NUMA node';
COMMENT ON COLUMN hugepage_pools.page_size IS 'in bytes';
COMMENT ON COLUMN hugepage_pools.node IS 'NUMA node, NULL for the whole host';
COMMENT ON COLUMN hugepage_pools.is_default IS 'whether it is the page size of mappings that ask for none';
COMMENT ON COLUMN hugepage_pools.nr_hugepages IS 'pages in the pool, surplus included';
COMMENT ON COLUMN hugepage_pools.free_hugepages IS 'of these, not yet touched, though perhaps reserved';
COMMENT ON COLUMN hugepage_pools.resv_hugepages IS 'of the free ones, promised to a mapping; NULL for a node';
COMMENT ON COLUMN hugepage_pools.surplus_hugepages IS 'pages above what the pool was set to, which go with their user';
COMMENT ON COLUMN hugepage_pools.nr_overcommit_hugepages IS 'surplus pages that the kernel may try to add; NULL for a node';
COMMENT ON COLUMN hugepage_pools.available IS 'free and promised to nobody; NULL for a node';
COMMENT ON COLUMN hugepage_pools.cgroup_limit IS 'the cgroup limit with the least room, in bytes; NULL if none can be seen';
COMMENT ON COLUMN hugepage_pools.cgroup_usage IS 'what counts against it, in bytes';
COMMENT ON COLUMN hugepage_pools.obtainable_now IS 'pages that the free memory as it lies could still give, without compaction; NULL for pages too large to tell';
