CREATE FUNCTION hugepage_fix(target text) RETURNS SETOF text
    STRICT VOLATILE PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_fix_wrapper';

ALTER FUNCTION hugepage_fix(text) ROWS 20;

REVOKE ALL ON FUNCTION hugepage_fix(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_fix(text) TO pg_monitor;

COMMENT ON FUNCTION hugepage_fix(text) IS 'the recommended change as a complete script or file, a row for each line, for sysctl, systemd, grub, postgresql, ansible, kubernetes, cloudnativepg, pgo or zalando';
