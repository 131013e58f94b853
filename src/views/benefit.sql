ALTER FUNCTION hugepage_benefit(interval) ROWS 9;

REVOKE ALL ON FUNCTION hugepage_benefit(interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_benefit(interval) TO pg_monitor;

COMMENT ON FUNCTION hugepage_benefit(interval) IS 'what huge pages would save, from page faults and page tables observed for that time; waits';
