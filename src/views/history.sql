CREATE FUNCTION hugepage_history() RETURNS SETOF hugepage_history_row
    STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_history_wrapper';

COMMENT ON FUNCTION hugepage_history() IS 'starts and state changes of this cluster on this machine; recorded if the library is preloaded';

CREATE VIEW hugepage_history AS
    SELECT * FROM hugepage_history();

COMMENT ON VIEW hugepage_history IS 'starts and state changes of this cluster on this machine, the oldest first; recorded if the library is preloaded';
