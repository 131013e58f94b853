CREATE FUNCTION hugepage_findings() RETURNS TABLE (
    finding text, -- name of the finding, such as restart_loses; see docs/findings.md
    severity text, -- notice, warning or critical; NULL if a kernel advisory may not apply
    message text, -- the state, one sentence; of a kernel advisory also its source
    hint text -- the steps that help, NULL if there are none
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 3
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

COMMENT ON FUNCTION hugepage_findings() IS 'what was found about this server and its kernel, each with its severity and what to do; empty if all is as requested';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

COMMENT ON VIEW hugepage_findings IS 'what was found about this server and its kernel, each with its severity and what to do, the most severe first; empty if all is as requested';
