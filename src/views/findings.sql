CREATE FUNCTION hugepage_findings() RETURNS SETOF hugepage_findings_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 3
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

COMMENT ON FUNCTION hugepage_findings() IS 'what was found about this server and its kernel, each with its severity and what to do; empty if all is as requested';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

COMMENT ON VIEW hugepage_findings IS 'what was found about this server and its kernel, each with its severity and what to do, the most severe first; empty if all is as requested';
