CREATE FUNCTION hugepage_pools() RETURNS TABLE (
    page_size bigint, -- page size of the pool, in bytes
    is_default boolean, -- whether mappings that ask for no size get this size
    nr_hugepages bigint, -- pages in the pool, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    nr_overcommit_hugepages bigint, -- surplus pages that the kernel may allocate
    available_hugepages bigint, -- free pages that are not reserved
    cgroup_limit bigint, -- the cgroup limit that leaves the least, in bytes; NULL if none is visible
    cgroup_usage bigint -- usage that counts against cgroup_limit, in bytes
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_pools_wrapper';

COMMENT ON FUNCTION hugepage_pools() IS 'the huge page pools of this host, by page size';

CREATE VIEW hugepage_pools AS
    SELECT * FROM hugepage_pools();
