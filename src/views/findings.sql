CREATE FUNCTION hugepage_findings() RETURNS TABLE (
    finding text, severity text, detail text
)
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

ALTER FUNCTION hugepage_findings() ROWS 20;

REVOKE ALL ON FUNCTION hugepage_findings() FROM PUBLIC;
REVOKE ALL ON hugepage_findings FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_findings() TO pg_monitor;
GRANT SELECT ON hugepage_findings TO pg_monitor;

COMMENT ON FUNCTION hugepage_findings() IS 'every finding that can affect the verdict, and every advisory on kernels, with its severity here';
COMMENT ON VIEW hugepage_findings IS 'every finding that can affect the verdict, and every advisory on kernels, with its severity here; the most severe first';
COMMENT ON COLUMN hugepage_findings.finding IS 'name of the finding, such as restart_loses; see docs/verdicts.md';
COMMENT ON COLUMN hugepage_findings.severity IS 'ok if it does not apply, else notice, warning or critical; NULL if it is not known whether a kernel advisory applies';
COMMENT ON COLUMN hugepage_findings.detail IS 'what the kernel advisory says and its source; NULL if it does not apply, and for other findings';
