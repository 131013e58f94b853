CREATE FUNCTION hugepage_recommendations() RETURNS TABLE (
    priority integer, -- 1 is the most urgent
    severity text, -- notice, warning or critical
    area text, -- postgresql, kernel, boot, limits or cgroup
    setting text, -- the setting to change
    current text, -- its current value, NULL if none or unknown
    recommended text, -- the recommended value, NULL if the hint of the finding has a bound instead
    reason text, -- the reason, with the numbers of this host
    command text, -- the command that sets it: SQL for the area postgresql, else for a root shell
    takes_effect text, -- when the change takes effect: now, server restart or reboot
    saving bigint -- memory that it frees, in bytes; NULL if none or unknown
)
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_recommendations_wrapper';

COMMENT ON FUNCTION hugepage_recommendations() IS 'settings to change, the most severe first; empty if there is nothing to change';

CREATE VIEW hugepage_recommendations AS
    SELECT * FROM hugepage_recommendations();
