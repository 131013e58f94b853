REVOKE ALL ON FUNCTION hugepage_fix(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION hugepage_fix(text) TO pg_monitor;

COMMENT ON FUNCTION hugepage_fix(text) IS 'what to set as text that runs as it is, for sysctl, systemd, grub, postgresql, ansible or kubernetes';
