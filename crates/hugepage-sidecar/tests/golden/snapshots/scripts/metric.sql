-- A metric extension of Oracle Enterprise Manager: huge pages of the instance that is monitored.
-- Made by hugepage-sidecar [VERSION]
--
-- Adapter SQL, collected every 5 minutes, one row, key column: sid. For databases without containers the target type is
-- Database Instance; for multitenant ones either Pluggable Database, where the views are installed, or Database Instance,
-- with the views in the root: see docs/oracle.md. The user needs HUGEPAGE_READER.
-- severity: warning at 1, critical at 2; 3 means unknown. regression: warning at 1.
SELECT
  NVL(s.sid, SYS_CONTEXT('USERENV', 'INSTANCE_NAME')) AS sid,
  CASE
    WHEN s.sid IS NULL OR HUGEPAGE.hugepage_advisor.is_stale = 'Y' OR s.consistent = 'N' THEN 3
    WHEN s.verdict = 'critical' THEN 2
    WHEN s.verdict = 'warning' THEN 1
    WHEN s.verdict IN ('ok', 'notice') THEN 0
    ELSE 3
  END AS severity,
  s.landed_in,
  s.shared_memory,
  s.huge_page_bytes,
  s.base_page_bytes,
  s.pages_missing,
  s.available_hugepages,
  s.page_tables_host,
  CASE s.regression WHEN 'Y' THEN 1 ELSE 0 END AS regression,
  s.age_seconds,
  NVL(s.message, 'hugepage-sidecar found no such instance on this host.') AS message,
  s.hint
FROM dual
LEFT JOIN HUGEPAGE.hugepage_status s ON s.this_instance = 'Y'
