CREATE FUNCTION hugepage_benefit(duration interval DEFAULT '10 s') RETURNS TABLE (
    figure text, unit text, base double precision, huge_2mb double precision, huge_1gb double precision,
    confidence text, detail text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_benefit_wrapper';

ALTER FUNCTION hugepage_benefit(interval) ROWS 9;

REVOKE ALL ON FUNCTION hugepage_benefit(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_benefit(interval) TO pg_monitor;

COMMENT ON FUNCTION hugepage_benefit(interval) IS 'what huge pages would save, from page faults and page tables observed for that time; waits';
