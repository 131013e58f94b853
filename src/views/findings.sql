CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

ALTER FUNCTION hugepage_findings() ROWS 10;

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
GRANT SELECT ON hugepage_findings TO pg_monitor;

COMMENT ON FUNCTION hugepage_findings() IS 'each thing that a verdict can rest on, and how grave it is here';
COMMENT ON VIEW hugepage_findings IS 'each thing that a verdict can rest on, and how grave it is here, the gravest first';
COMMENT ON COLUMN hugepage_findings.finding IS 'what can be found, as restart_loses; docs/verdicts.md explains each';
COMMENT ON COLUMN hugepage_findings.severity IS 'ok if it is not so, else notice, warning or critical';
