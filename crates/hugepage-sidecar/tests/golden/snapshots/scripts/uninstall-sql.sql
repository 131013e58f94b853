-- Huge pages of this host as views of Oracle Database: removal.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux
--
-- Run it like the installation script, with the same names; also after an incomplete installation. It removes nothing if
-- the schema, the role or the directory has other objects or privileges.
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
  SELECT COUNT(*) INTO l_found FROM dba_users WHERE username = 'HUGEPAGE';
  IF l_found = 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'No user HUGEPAGE: this is not the database of the installation.');
  END IF;
  -- The user, the role and the directory may be there already: of an older installation, or of one that ended early.
  SELECT COUNT(*)
    INTO l_found
    FROM dba_users
   WHERE username = 'HUGEPAGE'
     AND account_status NOT LIKE '%LOCKED%';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The user HUGEPAGE can log in, so it is of no installation: choose another schema.');
  END IF;
  SELECT COUNT(*)
    INTO l_found
    FROM dba_objects
   WHERE owner = 'HUGEPAGE'
     AND object_name NOT LIKE 'SYS%'
     AND object_name NOT IN (
       'HUGEPAGE_ADVISOR',
       'HUGEPAGE_STATUS',
       'HUGEPAGE_POOLS',
       'HUGEPAGE_INSTANCES',
       'HUGEPAGE_FINDINGS',
       'HUGEPAGE_HOSTS',
       'HP_POOL', 'HP_POOL_T', 'HP_POOL_C',
       'HP_INSTANCE', 'HP_INSTANCE_T', 'HP_INSTANCE_C',
       'HP_FINDING', 'HP_FINDING_T', 'HP_FINDING_C',
       'HP_HOST', 'HP_HOST_T', 'HP_HOST_C'
     );
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The schema HUGEPAGE contains other objects: move or drop them first.');
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_tab_privs WHERE grantee = 'HUGEPAGE_READER' AND owner <> 'HUGEPAGE';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The role HUGEPAGE_READER has privileges on objects of other schemas.');
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_sys_privs WHERE grantee = 'HUGEPAGE_READER';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The role HUGEPAGE_READER has system privileges that no installation granted.');
  END IF;
  SELECT COUNT(*)
    INTO l_found
    FROM dba_directories
   WHERE directory_name = 'HUGEPAGE_DIR'
     AND RTRIM(directory_path, '/') <> '/var/lib/hugepage-sidecar/oracle';
  IF l_found > 0 THEN
    RAISE_APPLICATION_ERROR(-20700, 'The directory HUGEPAGE_DIR is not /var/lib/hugepage-sidecar/oracle.');
  END IF;
END;
/

PROMPT Removing the synonyms, the directory, the role and the user

DECLARE
  l_found PLS_INTEGER;
BEGIN
  FOR l_synonym IN (
    SELECT synonym_name FROM dba_synonyms WHERE owner = 'PUBLIC' AND table_owner = 'HUGEPAGE'
  ) LOOP
    EXECUTE IMMEDIATE 'DROP PUBLIC SYNONYM ' || l_synonym.synonym_name;
  END LOOP;
  -- An incomplete installation may not have created these.
  SELECT COUNT(*) INTO l_found FROM dba_directories WHERE directory_name = 'HUGEPAGE_DIR';
  IF l_found > 0 THEN
    EXECUTE IMMEDIATE 'DROP DIRECTORY HUGEPAGE_DIR';
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_roles WHERE role = 'HUGEPAGE_READER';
  IF l_found > 0 THEN
    EXECUTE IMMEDIATE 'DROP ROLE HUGEPAGE_READER';
  END IF;
  EXECUTE IMMEDIATE 'DROP USER HUGEPAGE CASCADE';
END;
/

PROMPT Done.
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
