CREATE FUNCTION hugepage_recommendations() RETURNS TABLE (
    priority integer, severity text, area text, setting text, current text, recommended text, reason text, command text,
    takes_effect text, saving bigint
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();

ALTER FUNCTION hugepage_recommendations() ROWS 10;

REVOKE ALL ON FUNCTION hugepage_recommendations() FROM PUBLIC;
REVOKE ALL ON hugepage_recommendations FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_recommendations() TO pg_monitor;
GRANT SELECT ON hugepage_recommendations TO pg_monitor;

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON VIEW hugepage_recommendations IS 'settings to change, the most severe first; empty if there is nothing to change';
COMMENT ON COLUMN hugepage_recommendations.priority IS '1 is the most urgent';
COMMENT ON COLUMN hugepage_recommendations.severity IS 'notice, warning or critical';
COMMENT ON COLUMN hugepage_recommendations.area IS 'postgresql, kernel, boot, limits, cgroup or node';
COMMENT ON COLUMN hugepage_recommendations.setting IS 'the setting to change';
COMMENT ON COLUMN hugepage_recommendations.current IS 'its current value, NULL if none or unknown';
COMMENT ON COLUMN hugepage_recommendations.recommended IS 'the recommended value, NULL if no value would help';
COMMENT ON COLUMN hugepage_recommendations.reason IS 'the reason, with the numbers of this host';
COMMENT ON COLUMN hugepage_recommendations.command IS 'the command that sets it: SQL for the area postgresql, else for a root shell';
COMMENT ON COLUMN hugepage_recommendations.takes_effect IS 'when the change takes effect: now, server restart or reboot';
COMMENT ON COLUMN hugepage_recommendations.saving IS 'memory that it frees, in bytes; NULL if none or unknown';
