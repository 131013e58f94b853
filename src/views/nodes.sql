CREATE FUNCTION hugepage_nodes() RETURNS TABLE (
    node integer, -- NUMA node
    page_size bigint, -- page size of the pool that this server uses or would use, in bytes
    nr_hugepages bigint, -- pages of the pool on the node, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved; NULL if there are several nodes
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    memory bigint, -- memory of the node, in bytes
    segment_pages bigint, -- huge pages of the main segment on the node, each counted once; 0 in 4 kB pages, NULL if the kernel does not say
    allowed boolean -- whether cpuset and memory policy of this server allow the node; NULL if unknown
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 2
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool and pages of shared memory; touches no page';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();
