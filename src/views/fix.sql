CREATE FUNCTION hugepage_fix(target text) RETURNS SETOF text
    STRICT VOLATILE PARALLEL RESTRICTED ROWS 20
    LANGUAGE c AS 'MODULE_PATHNAME', 'hugepage_fix_wrapper';

COMMENT ON FUNCTION hugepage_fix(text) IS 'the recommended change as a complete script or file, a row for each line, for sysctl, systemd, grub, postgresql, ansible, kubernetes, cloudnativepg, pgo or zalando';
