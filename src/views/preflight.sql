CREATE FUNCTION hugepage_preflight(
    shared_buffers text DEFAULT NULL, max_connections integer DEFAULT NULL, huge_page_size text DEFAULT NULL
) RETURNS TABLE (
    will_start boolean, -- whether the server would start; NULL if unknown
    lands_in text, -- hugetlb, base or unknown; NULL if the server would not start
    page_size bigint, -- size of these pages, in bytes; NULL if unknown
    shared_memory bigint, -- size of the main segment, in bytes
    pages_needed bigint, -- huge pages that the segment needs
    pages_guaranteed bigint, -- pages of the pool that the start would certainly get
    pages_missing bigint, -- pages needed beyond these
    cause text, -- why the segment would not be in huge pages
    detail text, -- why the server would not start, or why that is unknown
    hint text, -- what to do so that the start gets huge pages; NULL if it gets them, or nothing is known to help
    page_tables_base bigint, -- page tables of max_connections sessions in 4 kB pages, in bytes
    page_tables_huge bigint -- the same in huge pages, in bytes
)
    VOLATILE PARALLEL UNSAFE ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_preflight_wrapper';

COMMENT ON FUNCTION hugepage_preflight(text, integer, text) IS 'what a start with the configuration on disk would get, or with other values, written as in postgresql.conf; runs the server''s program';
