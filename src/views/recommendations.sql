CREATE FUNCTION hugepage_recommendations() RETURNS SETOF hugepage_recommendations_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();
