CREATE FUNCTION hugepage_segments(measure_resident boolean DEFAULT false) RETURNS TABLE (
    segment text, -- main, interlock, dynamic or other
    mapping text, -- name of the mapping in the kernel
    size bigint, -- memory of the mapping that this process may access, in bytes
    page_size bigint, -- page size of the mapping, in bytes
    landed_in text, -- hugetlb, thp, partial thp, base or unknown
    reserved bigint, -- address space of the mapping, in bytes: more than size if the server may resize it
    resident bigint, -- memory that this process has touched, in bytes; NULL unless measured
    thp_mapped bigint, -- of that, memory in transparent huge pages, in bytes; NULL unless measured
    hugetlb bigint -- of that, memory in hugetlb pages, in bytes; NULL unless measured
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 4
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

COMMENT ON FUNCTION hugepage_segments(boolean) IS 'the shared memory that this server process maps; with measure_resident its resident part too, for which the kernel walks the page tables';

CREATE VIEW hugepage_segments AS
    SELECT segment, mapping, size, page_size, landed_in, reserved FROM hugepage_segments();

COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';
