CREATE FUNCTION hugepage_findings() RETURNS TABLE (
    finding text, severity text, message text, hint text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

ALTER FUNCTION hugepage_findings() ROWS 3;

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
GRANT SELECT ON hugepage_findings TO pg_monitor;

COMMENT ON FUNCTION hugepage_findings() IS 'what was found about this server and its kernel, each with its severity and what to do; empty if all is as requested';
COMMENT ON VIEW hugepage_findings IS 'what was found about this server and its kernel, each with its severity and what to do, the most severe first; empty if all is as requested';
COMMENT ON COLUMN hugepage_findings.finding IS 'name of the finding, such as restart_loses; see docs/verdicts.md';
COMMENT ON COLUMN hugepage_findings.severity IS 'notice, warning or critical; NULL if it is not known whether a kernel advisory applies';
COMMENT ON COLUMN hugepage_findings.message IS 'one sentence on the state; of a kernel advisory what it says, and its source';
COMMENT ON COLUMN hugepage_findings.hint IS 'the steps that help, NULL if there are none';
