CREATE FUNCTION hugepage_findings() RETURNS SETOF hugepage_findings_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 3
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_findings_wrapper';

COMMENT ON FUNCTION hugepage_findings() IS 'problems and risks of this server and its kernel; empty if all is as requested';

CREATE VIEW hugepage_findings AS
    SELECT * FROM hugepage_findings();

COMMENT ON VIEW hugepage_findings IS 'problems and risks of this server and its kernel, the most severe first; empty if all is as requested';
