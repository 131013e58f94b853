CREATE FUNCTION hugepage_nodes() RETURNS TABLE (
    node integer, page_size bigint, nr_hugepages bigint, free_hugepages bigint, resv_hugepages bigint,
    surplus_hugepages bigint, memory bigint, segment_pages bigint, allowed boolean, restart_pages bigint, notice text,
    command text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_nodes_wrapper';

CREATE VIEW hugepage_nodes AS
    SELECT * FROM hugepage_nodes();

ALTER FUNCTION hugepage_nodes() ROWS 2;

REVOKE ALL ON FUNCTION hugepage_nodes() FROM PUBLIC;
REVOKE ALL ON hugepage_nodes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_nodes() TO pg_monitor;
GRANT SELECT ON hugepage_nodes TO pg_monitor;

COMMENT ON FUNCTION hugepage_nodes() IS 'the NUMA nodes of this host: pool, pages of shared memory, and what a restart would find; touches no page';
COMMENT ON VIEW hugepage_nodes IS 'the NUMA nodes of this host: pool, pages of shared memory, and what a restart would find; touches no page';
COMMENT ON COLUMN hugepage_nodes.node IS 'NUMA node';
COMMENT ON COLUMN hugepage_nodes.page_size IS 'page size of the pool that this server uses or would use, in bytes';
COMMENT ON COLUMN hugepage_nodes.nr_hugepages IS 'pages in the node''s pool, surplus included';
COMMENT ON COLUMN hugepage_nodes.free_hugepages IS 'pages of the node''s pool that are not in use, reserved ones included';
COMMENT ON COLUMN hugepage_nodes.resv_hugepages IS 'free pages that are reserved for a mapping; NULL if there are several nodes: the kernel counts them for the host';
COMMENT ON COLUMN hugepage_nodes.surplus_hugepages IS 'pages allocated beyond the configured size of the node''s pool; freed after use';
COMMENT ON COLUMN hugepage_nodes.memory IS 'memory of the node, in bytes';
COMMENT ON COLUMN hugepage_nodes.segment_pages IS 'huge pages of the main segment that are on the node, each counted once; 0 in base pages, NULL if the kernel does not say';
COMMENT ON COLUMN hugepage_nodes.allowed IS 'whether the cpuset and the memory policy of this server allow the node; NULL if unknown';
COMMENT ON COLUMN hugepage_nodes.restart_pages IS 'pages that a restart of this server would find on the node; 0 if it is not allowed, NULL if that depends on pages of other processes';
COMMENT ON COLUMN hugepage_nodes.notice IS 'what is uneven about the node, NULL if nothing is';
COMMENT ON COLUMN hugepage_nodes.command IS 'the command that evens it, NULL if there is none';
