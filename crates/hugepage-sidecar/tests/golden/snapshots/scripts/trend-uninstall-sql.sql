-- Huge pages of this host over time in Oracle Database: removal of the job, the procedure and the table with its rows.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux
--
-- Run it like the script that created them, with the same names; also after one that ended early. The views remain.
SET DEFINE OFF
SET ECHO OFF
SET FEEDBACK OFF
SET SERVEROUTPUT ON
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK

PROMPT Removing the job, the procedure and the table

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
  FOR l_object IN (
    SELECT object_type, object_name
      FROM dba_objects
     WHERE owner = 'HUGEPAGE'
       AND object_type IN ('PROCEDURE', 'TABLE')
       AND object_name IN ('HUGEPAGE_RECORD_TREND', 'HUGEPAGE_TREND')
     ORDER BY object_type
  ) LOOP
    EXECUTE IMMEDIATE 'DROP ' || l_object.object_type || ' HUGEPAGE.' || l_object.object_name
      || CASE l_object.object_type WHEN 'TABLE' THEN ' PURGE' ELSE '' END;
  END LOOP;
END;
/

PROMPT Done.
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
