CREATE FUNCTION hugepage_segments() RETURNS TABLE (
    segment text, mapping text, size bigint, page_size bigint, landed_in text, reserved bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

CREATE FUNCTION hugepage_segments_detail() RETURNS TABLE (
    segment text, mapping text, size bigint, page_size bigint, landed_in text, resident bigint, thp_mapped bigint,
    hugetlb bigint, reserved bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_detail_wrapper';

CREATE VIEW hugepage_segments AS
    SELECT * FROM hugepage_segments();

ALTER FUNCTION hugepage_segments() ROWS 4;
ALTER FUNCTION hugepage_segments_detail() ROWS 4;

REVOKE ALL ON FUNCTION hugepage_segments() FROM PUBLIC;
REVOKE ALL ON FUNCTION hugepage_segments_detail() FROM PUBLIC;
REVOKE ALL ON hugepage_segments FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_segments() TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_segments_detail() TO pg_monitor;
GRANT SELECT ON hugepage_segments TO pg_monitor;

COMMENT ON FUNCTION hugepage_segments() IS 'the shared memory that this server process maps';
COMMENT ON FUNCTION hugepage_segments_detail() IS 'the shared memory that this server process maps, with its resident part; walks its page tables';
COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';
COMMENT ON COLUMN hugepage_segments.segment IS 'main, interlock, dynamic or other';
COMMENT ON COLUMN hugepage_segments.mapping IS 'the kernel''s name of the mapping';
COMMENT ON COLUMN hugepage_segments.size IS 'memory of the mapping that this process may access, in bytes';
COMMENT ON COLUMN hugepage_segments.page_size IS 'page size of the mapping, in bytes';
COMMENT ON COLUMN hugepage_segments.landed_in IS 'hugetlb, thp, partial thp, base or unknown';
COMMENT ON COLUMN hugepage_segments.reserved IS 'address space of the mapping, in bytes: more than size if the server may resize it';
