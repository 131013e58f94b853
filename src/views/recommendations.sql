CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();

ALTER FUNCTION hugepage_recommendations() ROWS 10;

REVOKE ALL ON FUNCTION hugepage_recommendations() FROM PUBLIC;
REVOKE ALL ON hugepage_recommendations FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_recommendations() TO pg_monitor;
GRANT SELECT ON hugepage_recommendations TO pg_monitor;

COMMENT ON FUNCTION hugepage_recommendations() IS 'what to set, the gravest first; empty if all is well';
COMMENT ON VIEW hugepage_recommendations IS 'what to set, the gravest first; empty if all is well';
COMMENT ON COLUMN hugepage_recommendations.priority IS '1 comes first';
COMMENT ON COLUMN hugepage_recommendations.severity IS 'notice, warning or critical';
COMMENT ON COLUMN hugepage_recommendations.area IS 'postgresql, kernel, boot, limits or cgroup';
COMMENT ON COLUMN hugepage_recommendations.setting IS 'what to set';
COMMENT ON COLUMN hugepage_recommendations.current IS 'its value now, NULL if none or unknown';
COMMENT ON COLUMN hugepage_recommendations.recommended IS 'the value that it should have, NULL if no value would do';
COMMENT ON COLUMN hugepage_recommendations.reason IS 'why, with the numbers of this host';
COMMENT ON COLUMN hugepage_recommendations.command IS 'the command that sets it; SQL for the area postgresql, else for a shell of root';
COMMENT ON COLUMN hugepage_recommendations.takes_effect IS 'now, server restart or reboot';
COMMENT ON COLUMN hugepage_recommendations.saves IS 'memory that it gives back, in bytes; NULL if none or unknown';
