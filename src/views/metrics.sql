REVOKE ALL ON FUNCTION hugepage_metrics() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_metrics() TO pg_monitor;

COMMENT ON FUNCTION hugepage_metrics() IS 'this server and its host as OpenMetrics text, for node_exporter and the like';
