CREATE FUNCTION hugepage_segments(measure_resident boolean DEFAULT false) RETURNS SETOF hugepage_segments_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 4
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_segments_wrapper';

COMMENT ON FUNCTION hugepage_segments(boolean) IS 'the shared memory that this server process maps; with measure_resident its resident part too, for which the kernel walks the page tables';

CREATE VIEW hugepage_segments AS
    SELECT segment, mapping, size, page_size, landed_in, reserved FROM hugepage_segments();

COMMENT ON VIEW hugepage_segments IS 'the shared memory that this server process maps';
