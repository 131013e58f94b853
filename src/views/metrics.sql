CREATE FUNCTION hugepage_metrics() RETURNS text
    VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_metrics_wrapper';

COMMENT ON FUNCTION hugepage_metrics() IS 'metrics of this server and its host as OpenMetrics text, for example for node_exporter';
