CREATE FUNCTION hugepage_status() RETURNS TABLE (
    verdict text, -- ok, notice, warning or critical
    message text, -- the state, one sentence
    hint text, -- what to do, one sentence; NULL if nothing
    shared_buffers_in_huge_pages boolean, -- whether the mapping with shared_buffers is in huge pages of the pool, not transparent ones; NULL if unknown
    landed_in text, -- hugetlb, thp, partial thp, base or unknown
    mapping text, -- name of the mapping in the kernel: anon_hugepage, zero, SYSV...
    page_size bigint, -- page size of the mapping, in bytes
    cause text, -- why shared memory is not in the pages that were asked for; NULL if it is
    shared_buffers bigint, -- size of the buffer pool, in bytes
    shared_memory bigint, -- size of the main segment, in bytes
    huge_pages text, -- value of the setting huge_pages
    huge_page_size bigint, -- the huge page size in effect, in bytes
    pages_needed bigint, -- huge pages that the running segment needs
    pages_missing bigint, -- of these, pages that are not available now; 0 in huge pages
    nr_hugepages bigint, -- pages in the pool of that page size, surplus included
    free_hugepages bigint, -- free pages, reserved ones included
    resv_hugepages bigint, -- free pages that are reserved
    surplus_hugepages bigint, -- pages beyond the configured size, which the kernel frees after use
    available_hugepages bigint, -- free pages that are not reserved
    page_tables_host bigint, -- page tables of the whole host, in bytes
    transparent_hugepage text, -- transparent huge pages: always, madvise or never; NULL if the kernel has none
    restart_outlook text, -- what a restart with the configuration on disk would get: hugetlb, base, fails or unknown
    recommended_nr_hugepages bigint, -- recommended size of the pool, in pages: what this server needs and others hold, never less than it has
    generation bigint, -- number of allocations of shared memory by this postmaster; NULL if the library is not preloaded
    notes text[], -- what could not be read, and why
    crash_outlook text, -- what the restart after a crash of one process would get, with the running settings: hugetlb, base, fails or unknown
    boot_outlook text -- what the first start after the next boot would get: hugetlb, base, fails or unknown; NULL if nobody has looked
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_status_wrapper';

COMMENT ON FUNCTION hugepage_status() IS 'whether shared memory landed in huge pages, why not, and what to set';

CREATE VIEW hugepage_status AS
    SELECT * FROM hugepage_status();
