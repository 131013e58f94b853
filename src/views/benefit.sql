CREATE FUNCTION hugepage_benefit(duration interval DEFAULT '10 s') RETURNS TABLE (
    figure text, -- what is measured; summary has the result as a sentence in detail
    unit text, -- unit of the values
    base double precision, -- the value on base pages
    huge_2mb double precision, -- the value on pages of 2 MB
    huge_1gb double precision, -- the value on pages of 1 GB
    confidence text, -- measured, modelled or unknown
    detail text -- how the value was found
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 9
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_benefit_wrapper';

COMMENT ON FUNCTION hugepage_benefit(interval) IS 'what huge pages would save, from page faults and page tables observed for that time; waits';
