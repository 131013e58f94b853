-- The Oracle instances of all nodes of a cluster in one view of Oracle Database: hugepage_cluster.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux. Optional: hugepage_status has the instances of
-- the node of the session.
--
-- The sidecar of each node also writes into its own directory of a file system that all nodes mount at the same path:
--    rac1: hugepage-sidecar watch --oracle-dir /var/lib/hugepage-sidecar/oracle --oracle-dir /shared/rac1
--    rac2: hugepage-sidecar watch --oracle-dir /var/lib/hugepage-sidecar/oracle --oracle-dir /shared/rac2
-- Run this script like the installation script, with the same names, after the installation, and again after an upgrade or if
-- nodes are added. The uninstallation script removes the view. These remove the directories:
--    DROP DIRECTORY HUGEPAGE_DIR_1
--    DROP DIRECTORY HUGEPAGE_DIR_2
SET DEFINE OFF
SET ECHO OFF
SET FEEDBACK OFF
SET SERVEROUTPUT ON
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK

PROMPT Checking

DECLARE
  l_found PLS_INTEGER;
BEGIN
  SELECT COUNT(*)
    INTO l_found
    FROM dba_objects
   WHERE owner = 'HUGEPAGE'
     AND object_name = 'HUGEPAGE_ADVISOR'
     AND object_type = 'PACKAGE BODY';
  IF l_found = 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'There is no installation in HUGEPAGE: run the installation script.');
  END IF;
  SELECT COUNT(*)
    INTO l_found
    FROM dba_directories
   WHERE directory_name = 'HUGEPAGE_DIR_1'
     AND RTRIM(directory_path, '/') <> '/shared/rac1';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The directory HUGEPAGE_DIR_1 is not /shared/rac1.');
  END IF;
  SELECT COUNT(*)
    INTO l_found
    FROM dba_directories
   WHERE directory_name = 'HUGEPAGE_DIR_2'
     AND RTRIM(directory_path, '/') <> '/shared/rac2';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The directory HUGEPAGE_DIR_2 is not /shared/rac2.');
  END IF;
END;
/

PROMPT Creating the directories of the nodes, as far as they are missing

DECLARE
  l_found PLS_INTEGER;
BEGIN
  SELECT COUNT(*) INTO l_found FROM dba_directories WHERE directory_name = 'HUGEPAGE_DIR_1';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE DIRECTORY HUGEPAGE_DIR_1 AS ''/shared/rac1''';
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_directories WHERE directory_name = 'HUGEPAGE_DIR_2';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE DIRECTORY HUGEPAGE_DIR_2 AS ''/shared/rac2''';
  END IF;
END;
/

-- Only READ: see the installation script.
GRANT READ ON DIRECTORY HUGEPAGE_DIR_1 TO HUGEPAGE;
GRANT READ ON DIRECTORY HUGEPAGE_DIR_2 TO HUGEPAGE;

PROMPT Creating the view

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_cluster AS
SELECT
  'rac1' AS node,
  HUGEPAGE.hugepage_advisor.is_stale(NULL, 'HUGEPAGE_DIR_1') AS is_stale,
  r.sid AS sid,
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  HUGEPAGE.hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid) AS this_instance,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.kind AS kind,
  r.verdict AS verdict,
  r.message AS message,
  r.hint AS hint,
  r.sga_in_huge_pages AS sga_in_huge_pages,
  r.landed_in AS landed_in,
  r.mapping AS mapping,
  r.page_size AS page_size,
  r.cause AS cause,
  r.shared_memory AS shared_memory,
  r.huge_page_bytes AS huge_page_bytes,
  r.base_page_bytes AS base_page_bytes,
  r.use_large_pages AS use_large_pages,
  r.huge_page_size AS huge_page_size,
  r.memlock AS memlock,
  r.memlock_unlimited AS memlock_unlimited,
  r.pages_needed AS pages_needed,
  r.pages_missing AS pages_missing,
  r.nr_hugepages AS nr_hugepages,
  r.free_hugepages AS free_hugepages,
  r.resv_hugepages AS resv_hugepages,
  r.surplus_hugepages AS surplus_hugepages,
  r.available_hugepages AS available_hugepages,
  r.page_tables_host AS page_tables_host,
  r.transparent_hugepage AS transparent_hugepage,
  r.restart_outlook AS restart_outlook,
  r.recommended_nr_hugepages AS recommended_nr_hugepages,
  r.notes AS notes,
  r.pid AS pid,
  r.home AS home,
  TO_DATE(r.started_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS started_utc,
  r.processes AS processes,
  r.page_tables_total AS page_tables_total,
  r.evidence AS evidence,
  r.memory_target AS memory_target,
  r.version AS version,
  r.regression AS regression,
  TO_DATE(r.regression_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS regression_utc,
  r.regression_detail AS regression_detail,
  r.state AS state,
  r.starts_at_boot AS starts_at_boot,
  r.last_start_available AS last_start_available,
  r.last_start_expected AS last_start_expected,
  r.last_start_allocated AS last_start_allocated,
  r.last_start_errors AS last_start_errors,
  r.instance_host AS instance_host
FROM dual
LEFT JOIN TABLE(HUGEPAGE.hugepage_advisor.instances('FILE', 'HUGEPAGE_DIR_1')) r ON r.kind <> 'postgresql'
UNION ALL
SELECT
  'rac2' AS node,
  HUGEPAGE.hugepage_advisor.is_stale(NULL, 'HUGEPAGE_DIR_2') AS is_stale,
  r.sid AS sid,
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  HUGEPAGE.hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid) AS this_instance,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.kind AS kind,
  r.verdict AS verdict,
  r.message AS message,
  r.hint AS hint,
  r.sga_in_huge_pages AS sga_in_huge_pages,
  r.landed_in AS landed_in,
  r.mapping AS mapping,
  r.page_size AS page_size,
  r.cause AS cause,
  r.shared_memory AS shared_memory,
  r.huge_page_bytes AS huge_page_bytes,
  r.base_page_bytes AS base_page_bytes,
  r.use_large_pages AS use_large_pages,
  r.huge_page_size AS huge_page_size,
  r.memlock AS memlock,
  r.memlock_unlimited AS memlock_unlimited,
  r.pages_needed AS pages_needed,
  r.pages_missing AS pages_missing,
  r.nr_hugepages AS nr_hugepages,
  r.free_hugepages AS free_hugepages,
  r.resv_hugepages AS resv_hugepages,
  r.surplus_hugepages AS surplus_hugepages,
  r.available_hugepages AS available_hugepages,
  r.page_tables_host AS page_tables_host,
  r.transparent_hugepage AS transparent_hugepage,
  r.restart_outlook AS restart_outlook,
  r.recommended_nr_hugepages AS recommended_nr_hugepages,
  r.notes AS notes,
  r.pid AS pid,
  r.home AS home,
  TO_DATE(r.started_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS started_utc,
  r.processes AS processes,
  r.page_tables_total AS page_tables_total,
  r.evidence AS evidence,
  r.memory_target AS memory_target,
  r.version AS version,
  r.regression AS regression,
  TO_DATE(r.regression_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS regression_utc,
  r.regression_detail AS regression_detail,
  r.state AS state,
  r.starts_at_boot AS starts_at_boot,
  r.last_start_available AS last_start_available,
  r.last_start_expected AS last_start_expected,
  r.last_start_allocated AS last_start_allocated,
  r.last_start_errors AS last_start_errors,
  r.instance_host AS instance_host
FROM dual
LEFT JOIN TABLE(HUGEPAGE.hugepage_advisor.instances('FILE', 'HUGEPAGE_DIR_2')) r ON r.kind <> 'postgresql';

COMMENT ON TABLE HUGEPAGE.hugepage_cluster IS 'Huge pages of the Oracle instances of all nodes: one row per instance, or one with NULL for a node without a snapshot or instances.';
COMMENT ON COLUMN HUGEPAGE.hugepage_cluster.node IS 'Name of the node, as in the path of its files.';
COMMENT ON COLUMN HUGEPAGE.hugepage_cluster.is_stale IS 'Y if the last snapshot of that node is stale or there is none: the rows are of the past. Otherwise N.';

GRANT SELECT ON HUGEPAGE.hugepage_cluster TO HUGEPAGE_READER;

PROMPT Compiling

DECLARE
  l_invalid PLS_INTEGER;
BEGIN
  DBMS_UTILITY.COMPILE_SCHEMA(schema => 'HUGEPAGE', compile_all => FALSE);
  FOR l_error IN (
    SELECT name, type, line, text
      FROM dba_errors
     WHERE owner = 'HUGEPAGE'
     ORDER BY name, type, sequence
  ) LOOP
    DBMS_OUTPUT.PUT_LINE(l_error.type || ' ' || l_error.name || ', line ' || l_error.line || ': ' || l_error.text);
  END LOOP;
  SELECT COUNT(*) INTO l_invalid FROM dba_objects WHERE owner = 'HUGEPAGE' AND status <> 'VALID';
  IF l_invalid > 0 THEN
    RAISE_APPLICATION_ERROR(-20701, l_invalid || ' objects of HUGEPAGE do not compile.');
  END IF;
END;
/

PROMPT Done.
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
