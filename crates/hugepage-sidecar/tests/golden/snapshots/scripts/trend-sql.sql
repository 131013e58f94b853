-- Huge pages of this host over time in Oracle Database: a table, and a job of the scheduler that adds to it.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux. Optional.
--
-- Run it like the installation script, with the same names, after the installation; again to change its options. The job reads the
-- views every 5 minutes and keeps 90 days. It records the host on which it runs. An upgrade of the views keeps
-- it, and the uninstallation script removes it. These remove it alone:
--    EXECUTE DBMS_SCHEDULER.DROP_JOB('HUGEPAGE.HUGEPAGE_TREND_JOB', TRUE)
--    DROP PROCEDURE HUGEPAGE.hugepage_record_trend
--    DROP TABLE HUGEPAGE.hugepage_trend PURGE
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
END;
/

PROMPT Creating the table, as far as it is missing

-- 1 MB holds some 3000 rows.
DECLARE
  l_found PLS_INTEGER;
  l_tablespace VARCHAR2(128);
BEGIN
  SELECT default_tablespace INTO l_tablespace FROM dba_users WHERE username = 'HUGEPAGE';
  EXECUTE IMMEDIATE 'ALTER USER HUGEPAGE QUOTA 1024M ON "' || l_tablespace || '"';
  SELECT COUNT(*)
    INTO l_found
    FROM dba_objects
   WHERE owner = 'HUGEPAGE'
     AND object_name = 'HUGEPAGE_TREND'
     AND object_type = 'TABLE';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE TABLE HUGEPAGE.hugepage_trend (
      snapshot_utc DATE,
      host_name VARCHAR2(64),
      kind VARCHAR2(10),
      sid VARCHAR2(64),
      home VARCHAR2(160),
      state VARCHAR2(8),
      verdict VARCHAR2(8),
      landed_in VARCHAR2(11),
      cause VARCHAR2(24),
      shared_memory NUMBER(20),
      huge_page_bytes NUMBER(20),
      base_page_bytes NUMBER(20),
      pages_needed NUMBER(20),
      pages_missing NUMBER(20),
      nr_hugepages NUMBER(20),
      free_hugepages NUMBER(20),
      resv_hugepages NUMBER(20),
      available_hugepages NUMBER(20),
      restart_outlook VARCHAR2(8),
      page_tables_host NUMBER(20),
      processes NUMBER(20),
      page_tables_total NUMBER(20),
      regression VARCHAR2(1),
      message VARCHAR2(300),
      recorded_utc DATE
    ) TABLESPACE "' || l_tablespace || '"';
  END IF;
  SELECT COUNT(*)
    INTO l_found
    FROM dba_objects
   WHERE owner = 'HUGEPAGE'
     AND object_name = 'HUGEPAGE_TREND_I';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE INDEX HUGEPAGE.hugepage_trend_i ON HUGEPAGE.hugepage_trend (snapshot_utc) TABLESPACE "'
      || l_tablespace || '"';
  END IF;
END;
/

COMMENT ON COLUMN HUGEPAGE.hugepage_trend.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.kind IS 'Kind of instance: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.sid IS 'ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path).';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.home IS 'ORACLE_HOME (PostgreSQL: data directory); NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.state IS 'running; stopped (Oracle, listed in oratab); failed (the same, and its last start ended with an error about memory).';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.verdict IS 'ok (as configured, also after a restart), notice, warning or critical.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.landed_in IS 'hugetlb (all in huge pages), mixed, thp, partial thp, base, or unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.cause IS 'Why the SGA is not in huge pages: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit, shm_group, shm_limit, memory_target, page_size_unsupported, sysv_shared_memory, node_limit, memory_limit or unknown; NULL if it is as configured.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.shared_memory IS 'Size of the SGA (all shared memory of the instance) in bytes; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.huge_page_bytes IS 'Part of the SGA in huge pages, in bytes; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.base_page_bytes IS 'Part of the SGA in base pages, in bytes; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.pages_needed IS 'Huge pages that the SGA needs; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.pages_missing IS 'Needed pages that are unavailable now; 0 if the whole SGA is in huge pages; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.nr_hugepages IS 'Pages in the pool of huge_page_size; NULL if unknown, also in the next four columns.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.free_hugepages IS 'Free pages of that pool, including reserved pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.resv_hugepages IS 'Free pages of that pool that are reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.available_hugepages IS 'Free pages of that pool that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.restart_outlook IS 'Expected result of the next start: hugetlb, mixed, base, fails or unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.page_tables_host IS 'PageTables of the host, in bytes; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.processes IS 'Number of processes of the instance; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.page_tables_total IS 'Page tables of its processes in bytes; NULL if unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.regression IS 'Whether the last start lost huge pages, which are still lost; N if neither a history of the server or of `watch` nor the alert log shows it.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.message IS 'The state in one sentence.';
COMMENT ON COLUMN HUGEPAGE.hugepage_trend.recorded_utc IS 'When the job recorded it, UTC.';
COMMENT ON TABLE HUGEPAGE.hugepage_trend IS 'Huge pages of the Oracle instances over time: one row per snapshot and instance.';

GRANT SELECT ON HUGEPAGE.hugepage_trend TO HUGEPAGE_READER;

PROMPT Creating the procedure

CREATE OR REPLACE PROCEDURE HUGEPAGE.hugepage_record_trend AS
  l_now DATE := CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE);
BEGIN
  -- A snapshot that is there already was not replaced since: the sidecar may not run.
  INSERT INTO hugepage_trend (
    snapshot_utc,
    host_name,
    kind,
    sid,
    home,
    state,
    verdict,
    landed_in,
    cause,
    shared_memory,
    huge_page_bytes,
    base_page_bytes,
    pages_needed,
    pages_missing,
    nr_hugepages,
    free_hugepages,
    resv_hugepages,
    available_hugepages,
    restart_outlook,
    page_tables_host,
    processes,
    page_tables_total,
    regression,
    message,
    recorded_utc
  )
  SELECT
    s.snapshot_utc,
    s.host_name,
    s.kind,
    s.sid,
    s.home,
    s.state,
    s.verdict,
    s.landed_in,
    s.cause,
    s.shared_memory,
    s.huge_page_bytes,
    s.base_page_bytes,
    s.pages_needed,
    s.pages_missing,
    s.nr_hugepages,
    s.free_hugepages,
    s.resv_hugepages,
    s.available_hugepages,
    s.restart_outlook,
    s.page_tables_host,
    s.processes,
    s.page_tables_total,
    s.regression,
    s.message,
    l_now
  FROM hugepage_status s
  WHERE s.consistent = 'Y'
    AND NOT EXISTS (
      SELECT 1
      FROM hugepage_trend t
      WHERE t.snapshot_utc = s.snapshot_utc
        AND t.host_name = s.host_name
        AND t.kind = s.kind
        AND t.sid = s.sid
    );
  DELETE FROM hugepage_trend WHERE snapshot_utc < l_now - 90;
  COMMIT;
END hugepage_record_trend;
/
SHOW ERRORS

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

PROMPT Creating the job

DECLARE
  l_found PLS_INTEGER;
BEGIN
  SELECT COUNT(*)
    INTO l_found
    FROM dba_scheduler_jobs
   WHERE owner = 'HUGEPAGE'
     AND job_name = 'HUGEPAGE_TREND_JOB';
  IF l_found > 0 THEN
    DBMS_SCHEDULER.DROP_JOB('HUGEPAGE.HUGEPAGE_TREND_JOB', TRUE);
  END IF;
  DBMS_SCHEDULER.CREATE_JOB(
    job_name => 'HUGEPAGE.HUGEPAGE_TREND_JOB',
    job_type => 'STORED_PROCEDURE',
    job_action => 'HUGEPAGE.HUGEPAGE_RECORD_TREND',
    repeat_interval => 'FREQ=MINUTELY;INTERVAL=5',
    enabled => FALSE,
    comments => 'Records huge pages in hugepage_trend'
  );
  DBMS_SCHEDULER.ENABLE('HUGEPAGE.HUGEPAGE_TREND_JOB');
END;
/

PROMPT Done. SELECT * FROM HUGEPAGE.hugepage_trend ORDER BY snapshot_utc
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
