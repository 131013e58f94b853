-- Huge pages of this host as views of Oracle Database: installation, or upgrade of an older one.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux
--
-- Run it in SQL*Plus or SQLcl as SYS (sqlplus / as sysdba): only SYS can grant EXECUTE on SYS.UTL_FILE. A DBA can run it
-- where PUBLIC has that privilege, or if it was printed with --external-tables.
-- In a multitenant database run it in each PDB that needs the views (ALTER SESSION SET CONTAINER = name); all PDBs read
-- the same files. For the root, print the script with a schema and a role whose names begin with C##. A PDB with
-- PATH_PREFIX refuses an absolute path: use a directory below that prefix.
-- It goes on from an installation or upgrade that ended early, and creates nothing if a name is in use by something else. An
-- upgrade, with the same names and options, keeps the user, role, directory, synonyms and grants on the views. Grants on the
-- package are removed.
-- At its end SQL*Plus has the default settings of SERVEROUTPUT, FEEDBACK, DEFINE and WHENEVER. uninstall-sql prints the
-- script that removes everything.
SET DEFINE OFF
SET ECHO OFF
SET FEEDBACK OFF
SET SERVEROUTPUT ON
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK

PROMPT Checking

DECLARE
  l_found PLS_INTEGER;
  l_container VARCHAR2(128);
  e_no_such_parameter EXCEPTION;
  PRAGMA EXCEPTION_INIT(e_no_such_parameter, -2003);
BEGIN
  IF DBMS_DB_VERSION.VERSION < 11 OR (DBMS_DB_VERSION.VERSION = 11 AND DBMS_DB_VERSION.RELEASE < 2) THEN
    RAISE_APPLICATION_ERROR(-20700, 'Oracle Database 11.2 or later is required.');
  END IF;
  BEGIN
    l_container := SYS_CONTEXT('USERENV', 'CON_NAME');
  EXCEPTION
    -- Before 12c there are no containers.
    WHEN e_no_such_parameter THEN
      l_container := NULL;
  END;
  IF l_container = 'CDB$ROOT' AND SUBSTR('HUGEPAGE', 1, 3) <> 'C##' THEN
    RAISE_APPLICATION_ERROR(-20700, 'This is the root of a multitenant database: run ALTER SESSION SET CONTAINER for a PDB first.');
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
  SELECT COUNT(*) INTO l_found FROM dba_users WHERE username = 'HUGEPAGE';
  IF l_found = 0 THEN
    SELECT COUNT(*) INTO l_found FROM dba_roles WHERE role = 'HUGEPAGE_READER';
    IF l_found > 0 THEN
      RAISE_APPLICATION_ERROR(-20700, 'The role HUGEPAGE_READER already exists: choose another role.');
    END IF;
    SELECT COUNT(*) INTO l_found FROM dba_directories WHERE directory_name = 'HUGEPAGE_DIR';
    IF l_found > 0 THEN
      RAISE_APPLICATION_ERROR(-20700, 'The directory HUGEPAGE_DIR already exists: choose another name.');
    END IF;
  END IF;
END;
/

PROMPT Creating the user HUGEPAGE, the role HUGEPAGE_READER and the directory HUGEPAGE_DIR, as far as they are missing

-- The user owns the objects and cannot log in. Its password satisfies Oracle's own verification functions; nobody knows it.
DECLARE
  l_found PLS_INTEGER;
  l_identified VARCHAR2(100);
  e_refused EXCEPTION;
  PRAGMA EXCEPTION_INIT(e_refused, -1031);
BEGIN
  SELECT COUNT(*) INTO l_found FROM dba_users WHERE username = 'HUGEPAGE';
  IF l_found = 0 THEN
    IF DBMS_DB_VERSION.VERSION >= 18 THEN
      l_identified := 'NO AUTHENTICATION';
    ELSE
      l_identified := 'IDENTIFIED BY "xAy1#_Bz' || SUBSTR(RAWTOHEX(SYS_GUID()), 1, 22) || '" PASSWORD EXPIRE';
    END IF;
    EXECUTE IMMEDIATE 'CREATE USER HUGEPAGE ' || l_identified || ' ACCOUNT LOCK';
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_roles WHERE role = 'HUGEPAGE_READER';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE ROLE HUGEPAGE_READER';
  END IF;
  SELECT COUNT(*) INTO l_found FROM dba_directories WHERE directory_name = 'HUGEPAGE_DIR';
  IF l_found = 0 THEN
    EXECUTE IMMEDIATE 'CREATE DIRECTORY HUGEPAGE_DIR AS ''/var/lib/hugepage-sidecar/oracle''';
  END IF;
EXCEPTION
  WHEN e_refused THEN
    RAISE_APPLICATION_ERROR(
      -20700, 'ORA-01031: let those who may (with Database Vault: DV_ACCTMGR) create the user, the role and the directory, see docs/oracle.md.'
    );
END;
/

PROMPT Taking WRITE on the directory from its creator

DECLARE
  l_by VARCHAR2(128) := USER;
BEGIN
  FOR l_privilege IN (
    SELECT grantee, privilege
      FROM dba_tab_privs
     WHERE table_name = 'HUGEPAGE_DIR'
       AND owner = 'SYS'
       AND privilege IN ('EXECUTE', 'WRITE')
       AND grantee <> 'SYS'
  ) LOOP
    -- Nobody can take a privilege from himself (ORA-01749).
    IF l_privilege.grantee = l_by THEN
      DBMS_OUTPUT.PUT_LINE('As SYS: REVOKE ' || l_privilege.privilege || ' ON DIRECTORY HUGEPAGE_DIR FROM ' || l_by || ';');
    ELSE
      EXECUTE IMMEDIATE 'REVOKE ' || l_privilege.privilege || ' ON DIRECTORY HUGEPAGE_DIR FROM "' || l_privilege.grantee || '"';
    END IF;
  END LOOP;
END;
/

-- Only READ, and directly to the user: a package ignores privileges of roles. WRITE would let the database overwrite the
-- files of root, and EXECUTE would let it run programs.
GRANT READ ON DIRECTORY HUGEPAGE_DIR TO HUGEPAGE;

-- A DBA cannot grant this, but needs not if PUBLIC has it.
DECLARE
  l_found PLS_INTEGER;
BEGIN
  EXECUTE IMMEDIATE 'GRANT EXECUTE ON SYS.UTL_FILE TO HUGEPAGE';
EXCEPTION
  WHEN OTHERS THEN
    SELECT COUNT(*)
      INTO l_found
      FROM dba_tab_privs
     WHERE grantee IN ('PUBLIC', 'HUGEPAGE')
       AND owner = 'SYS'
       AND table_name = 'UTL_FILE'
       AND privilege = 'EXECUTE';
    IF l_found = 0 THEN
      RAISE_APPLICATION_ERROR(
        -20700, 'EXECUTE on UTL_FILE could not be granted: run this as SYS, or print the script with --external-tables.'
      );
    END IF;
END;
/

PROMPT Removing tables, types and package of an earlier run

BEGIN
  FOR l_object IN (
    SELECT object_type, object_name
      FROM dba_objects
     WHERE owner = 'HUGEPAGE'
       AND object_type IN ('PACKAGE', 'TABLE', 'TYPE')
       AND object_name IN (
         'HUGEPAGE_ADVISOR',
         'HP_POOL', 'HP_POOL_T', 'HP_POOL_C',
         'HP_INSTANCE', 'HP_INSTANCE_T', 'HP_INSTANCE_C',
         'HP_FINDING', 'HP_FINDING_T', 'HP_FINDING_C',
         'HP_HOST', 'HP_HOST_T', 'HP_HOST_C'
       )
     ORDER BY object_type
  ) LOOP
    EXECUTE IMMEDIATE 'DROP ' || l_object.object_type || ' HUGEPAGE.' || l_object.object_name
      || CASE l_object.object_type WHEN 'TABLE' THEN ' PURGE' WHEN 'TYPE' THEN ' FORCE' ELSE '' END;
  END LOOP;
END;
/

PROMPT Creating an external table for each file

CREATE TABLE HUGEPAGE.hp_pool (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  page_size NUMBER(20),
  node NUMBER(20),
  is_default VARCHAR2(1),
  nr_hugepages NUMBER(20),
  free_hugepages NUMBER(20),
  resv_hugepages NUMBER(20),
  surplus_hugepages NUMBER(20),
  nr_overcommit_hugepages NUMBER(20),
  available_hugepages NUMBER(20),
  cgroup_limit NUMBER(20),
  cgroup_usage NUMBER(20)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
    FIELDS TERMINATED BY '|' MISSING FIELD VALUES ARE NULL (
      format_version CHAR(20),
      snapshot_id CHAR(16),
      snapshot_utc CHAR(19),
      host_name CHAR(64),
      page_size CHAR(20),
      node CHAR(20),
      is_default CHAR(1),
      nr_hugepages CHAR(20),
      free_hugepages CHAR(20),
      resv_hugepages CHAR(20),
      surplus_hugepages CHAR(20),
      nr_overcommit_hugepages CHAR(20),
      available_hugepages CHAR(20),
      cgroup_limit CHAR(20),
      cgroup_usage CHAR(20)
    )
  )
  LOCATION ('hp_pool.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_pool IS 'Pools of huge pages of this host: one row per page size, and one per NUMA node.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.format_version IS 'Version of the file format: 1.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.snapshot_id IS 'ID of the snapshot: the same in all files.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hp_pool.page_size IS 'Page size of the pool, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.node IS 'NUMA node; NULL for the pool of the whole host.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.is_default IS 'Whether mappings that ask for no size get this size.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.nr_hugepages IS 'Pages in the pool, surplus included.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.free_hugepages IS 'Free pages, reserved ones included.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.resv_hugepages IS 'Free pages that are reserved; NULL for a NUMA node, where the kernel does not count them.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.surplus_hugepages IS 'Pages beyond the configured size, which the kernel frees after use.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.nr_overcommit_hugepages IS 'Surplus pages that the kernel may allocate; NULL for a NUMA node.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.available_hugepages IS 'Free pages that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.cgroup_limit IS 'The cgroup limit that leaves the least, in bytes; NULL if none is visible.';
COMMENT ON COLUMN HUGEPAGE.hp_pool.cgroup_usage IS 'Usage that counts against cgroup_limit, in bytes.';

CREATE TABLE HUGEPAGE.hp_instance (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  kind VARCHAR2(10),
  sid VARCHAR2(64),
  verdict VARCHAR2(8),
  message VARCHAR2(300),
  hint VARCHAR2(300),
  sga_in_huge_pages VARCHAR2(1),
  landed_in VARCHAR2(11),
  mapping VARCHAR2(32),
  page_size NUMBER(20),
  cause VARCHAR2(24),
  shared_memory NUMBER(20),
  huge_page_bytes NUMBER(20),
  base_page_bytes NUMBER(20),
  use_large_pages VARCHAR2(10),
  huge_page_size NUMBER(20),
  memlock NUMBER(20),
  memlock_unlimited VARCHAR2(1),
  pages_needed NUMBER(20),
  pages_missing NUMBER(20),
  nr_hugepages NUMBER(20),
  free_hugepages NUMBER(20),
  resv_hugepages NUMBER(20),
  surplus_hugepages NUMBER(20),
  available_hugepages NUMBER(20),
  page_tables_host NUMBER(20),
  transparent_hugepage VARCHAR2(8),
  restart_outlook VARCHAR2(8),
  recommended_nr_hugepages NUMBER(20),
  notes VARCHAR2(300),
  pid NUMBER(20),
  home VARCHAR2(160),
  started_utc VARCHAR2(19),
  processes NUMBER(20),
  page_tables_total NUMBER(20),
  memory_target VARCHAR2(1),
  version VARCHAR2(20),
  regression VARCHAR2(1),
  regression_utc VARCHAR2(19),
  regression_detail VARCHAR2(120),
  state VARCHAR2(8),
  starts_at_boot VARCHAR2(1),
  last_start_available NUMBER(20),
  last_start_expected NUMBER(20),
  last_start_allocated NUMBER(20),
  last_start_errors VARCHAR2(200),
  instance_host VARCHAR2(64)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
    FIELDS TERMINATED BY '|' MISSING FIELD VALUES ARE NULL (
      format_version CHAR(20),
      snapshot_id CHAR(16),
      snapshot_utc CHAR(19),
      host_name CHAR(64),
      kind CHAR(10),
      sid CHAR(64),
      verdict CHAR(8),
      message CHAR(300),
      hint CHAR(300),
      sga_in_huge_pages CHAR(1),
      landed_in CHAR(11),
      mapping CHAR(32),
      page_size CHAR(20),
      cause CHAR(24),
      shared_memory CHAR(20),
      huge_page_bytes CHAR(20),
      base_page_bytes CHAR(20),
      use_large_pages CHAR(10),
      huge_page_size CHAR(20),
      memlock CHAR(20),
      memlock_unlimited CHAR(1),
      pages_needed CHAR(20),
      pages_missing CHAR(20),
      nr_hugepages CHAR(20),
      free_hugepages CHAR(20),
      resv_hugepages CHAR(20),
      surplus_hugepages CHAR(20),
      available_hugepages CHAR(20),
      page_tables_host CHAR(20),
      transparent_hugepage CHAR(8),
      restart_outlook CHAR(8),
      recommended_nr_hugepages CHAR(20),
      notes CHAR(300),
      pid CHAR(20),
      home CHAR(160),
      started_utc CHAR(19),
      processes CHAR(20),
      page_tables_total CHAR(20),
      memory_target CHAR(1),
      version CHAR(20),
      regression CHAR(1),
      regression_utc CHAR(19),
      regression_detail CHAR(120),
      state CHAR(8),
      starts_at_boot CHAR(1),
      last_start_available CHAR(20),
      last_start_expected CHAR(20),
      last_start_allocated CHAR(20),
      last_start_errors CHAR(200),
      instance_host CHAR(64)
    )
  )
  LOCATION ('hp_instance.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_instance IS 'Huge pages of all instances of this host, including PostgreSQL servers: one row per instance.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.format_version IS 'Version of the file format: 1.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.snapshot_id IS 'ID of the snapshot: the same in all files.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.kind IS 'Kind of instance: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.sid IS 'ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.verdict IS 'Ok (as configured, also after a restart), notice, warning or critical; unknown if the snapshot is older than three intervals.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.message IS 'The state in one sentence.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.hint IS 'What to do, and whom its number counts; NULL if nothing, and without the role DBA. If it does not fit, a sentence on where it is.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.sga_in_huge_pages IS 'Whether the whole SGA (PostgreSQL: shared memory) is in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.landed_in IS 'The pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.mapping IS 'The kernel''s name of the mapping: anon_hugepage, zero, SYSV...; for Oracle of the largest segment.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.page_size IS 'Page size of the mapping, in bytes; for a mixed SGA the huge page size.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.cause IS 'Why the SGA is not in huge pages: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit, shm_group, shm_limit, memory_target, page_size_unsupported, sysv_shared_memory, node_limit or unknown; NULL if it is as configured.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.shared_memory IS 'Size of the main segment, in bytes; for Oracle of the whole SGA.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.huge_page_bytes IS 'Part of shared memory in huge pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.base_page_bytes IS 'Part of shared memory in base pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.use_large_pages IS 'Parameter use_large_pages (PostgreSQL: huge_pages), as far as visible from outside.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.huge_page_size IS 'The huge page size in effect, in bytes; the columns of the pool are for this size.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.memlock IS 'Max locked memory of the running instance (memlock), in bytes; NULL if unknown or unlimited.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.memlock_unlimited IS 'Whether memlock is unlimited.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.pages_needed IS 'Huge pages that the running segment has or would need.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.pages_missing IS 'Needed pages that are not available now; 0 in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.nr_hugepages IS 'Pages in the pool, surplus included.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.free_hugepages IS 'Free pages, reserved ones included.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.resv_hugepages IS 'Free pages that are reserved.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.surplus_hugepages IS 'Pages beyond the configured size, which the kernel frees after use.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.available_hugepages IS 'Free pages that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.page_tables_host IS 'Page tables of the whole host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.transparent_hugepage IS 'The kernel''s setting: always, madvise or never; NULL if it has none.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.restart_outlook IS 'What a start with the configuration on disk would get: hugetlb, base, fails or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.recommended_nr_hugepages IS 'Recommended pages in the pool, for this server and all others that are seen; never less than the pool has.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.notes IS 'What could not be read and why, separated by semicolons; NULL if everything was read.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.pid IS 'Process id of PMON (PostgreSQL: postmaster).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.home IS 'ORACLE_HOME (PostgreSQL: data directory).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.started_utc IS 'When the instance started, UTC.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.processes IS 'Processes of the instance.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.page_tables_total IS 'The server''s page tables, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.memory_target IS 'Whether MEMORY_TARGET is set (AMM), which excludes huge pages; NULL for a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.version IS 'Version from the alert log or PG_VERSION.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.regression IS 'Whether the last start lost huge pages, which are still lost; N if no history of the server or of `watch` shows it.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.regression_utc IS 'When that start was first observed, UTC; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.regression_detail IS 'What was lost, such as: was in huge pages of 2 MB, is in 4 kB pages; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.state IS 'State of the instance: running; stopped (Oracle, listed in oratab); failed (the same, and its last start ended with an error about memory).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.starts_at_boot IS 'Whether oratab or Grid Infrastructure starts the instance at boot; NULL if it is running or a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.last_start_available IS 'AVAILABLE_PAGES of huge_page_size in the alert log of the last start (since 12.1).';
COMMENT ON COLUMN HUGEPAGE.hp_instance.last_start_expected IS 'EXPECTED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.last_start_allocated IS 'ALLOCATED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.last_start_errors IS 'ERROR(s) of that table and errors of that start, separated by semicolons; NULL if there are none.';
COMMENT ON COLUMN HUGEPAGE.hp_instance.instance_host IS 'Name of the host as the instance sees it, if it is in a container with another name and the record has room for it.';

CREATE TABLE HUGEPAGE.hp_finding (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  priority NUMBER(20),
  kind VARCHAR2(10),
  sid VARCHAR2(64),
  severity VARCHAR2(8),
  area VARCHAR2(12),
  setting VARCHAR2(100),
  current_value VARCHAR2(64),
  recommended VARCHAR2(64),
  command VARCHAR2(250),
  takes_effect VARCHAR2(16),
  saving NUMBER(20),
  reason VARCHAR2(400),
  instance_host VARCHAR2(64)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
    FIELDS TERMINATED BY '|' MISSING FIELD VALUES ARE NULL (
      format_version CHAR(20),
      snapshot_id CHAR(16),
      snapshot_utc CHAR(19),
      host_name CHAR(64),
      priority CHAR(20),
      kind CHAR(10),
      sid CHAR(64),
      severity CHAR(8),
      area CHAR(12),
      setting CHAR(100),
      current_value CHAR(64),
      recommended CHAR(64),
      command CHAR(250),
      takes_effect CHAR(16),
      saving CHAR(20),
      reason CHAR(400),
      instance_host CHAR(64)
    )
  )
  LOCATION ('hp_finding.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_finding IS 'Recommendations for this host, ordered by priority: one row per setting.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.format_version IS 'Version of the file format: 1.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.snapshot_id IS 'ID of the snapshot: the same in all files.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hp_finding.priority IS '1 is the most urgent.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.kind IS 'Kind of the instance, as in hp_instance.dat; NULL for the host.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.sid IS 'SID of the instance, as in hp_instance.dat; NULL for the host.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.severity IS 'Severity of the recommendation: ok, notice, warning or critical.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.area IS 'Where the setting belongs: postgresql, kernel, boot, limits, cgroup or oracle.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.setting IS 'Its name in the file or command that sets it.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.current_value IS 'Its current value; NULL if none or unknown.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.recommended IS 'The recommended value; NULL if no possible value suffices.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.command IS 'The complete command; NULL if there is none, without the role DBA, or if it does not fit: hugepage-sidecar status has it.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.takes_effect IS 'Now, server restart or reboot.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.saving IS 'Memory that it frees, in bytes; NULL if none or unknown.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.reason IS 'Why, with the numbers of this host.';
COMMENT ON COLUMN HUGEPAGE.hp_finding.instance_host IS 'Name of the host as the instance sees it, as in hp_instance.dat.';

CREATE TABLE HUGEPAGE.hp_host (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  pool_count NUMBER(20),
  instance_count NUMBER(20),
  finding_count NUMBER(20),
  interval_seconds NUMBER(20),
  sidecar_version VARCHAR2(30),
  verdict VARCHAR2(8),
  memory_total NUMBER(20),
  memory_available NUMBER(20),
  page_tables_host NUMBER(20),
  huge_page_size NUMBER(20),
  hugetlb NUMBER(20),
  recommended_nr_hugepages NUMBER(20),
  transparent_hugepage VARCHAR2(8),
  hugetlb_shm_group NUMBER(20),
  kernel VARCHAR2(64),
  notes VARCHAR2(400)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
    FIELDS TERMINATED BY '|' MISSING FIELD VALUES ARE NULL (
      format_version CHAR(20),
      snapshot_id CHAR(16),
      snapshot_utc CHAR(19),
      host_name CHAR(64),
      pool_count CHAR(20),
      instance_count CHAR(20),
      finding_count CHAR(20),
      interval_seconds CHAR(20),
      sidecar_version CHAR(30),
      verdict CHAR(8),
      memory_total CHAR(20),
      memory_available CHAR(20),
      page_tables_host CHAR(20),
      huge_page_size CHAR(20),
      hugetlb CHAR(20),
      recommended_nr_hugepages CHAR(20),
      transparent_hugepage CHAR(8),
      hugetlb_shm_group CHAR(20),
      kernel CHAR(64),
      notes CHAR(400)
    )
  )
  LOCATION ('hp_host.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_host IS 'The memory of this host: one row.';
COMMENT ON COLUMN HUGEPAGE.hp_host.format_version IS 'Version of the file format: 1.';
COMMENT ON COLUMN HUGEPAGE.hp_host.snapshot_id IS 'ID of the snapshot: the same in all files.';
COMMENT ON COLUMN HUGEPAGE.hp_host.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hp_host.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hp_host.pool_count IS 'Number of records in hp_pool.dat.';
COMMENT ON COLUMN HUGEPAGE.hp_host.instance_count IS 'Number of records in hp_instance.dat.';
COMMENT ON COLUMN HUGEPAGE.hp_host.finding_count IS 'Number of records in hp_finding.dat.';
COMMENT ON COLUMN HUGEPAGE.hp_host.interval_seconds IS 'Seconds until the next snapshot; NULL if this one was taken manually.';
COMMENT ON COLUMN HUGEPAGE.hp_host.sidecar_version IS 'Version of hugepage-sidecar.';
COMMENT ON COLUMN HUGEPAGE.hp_host.verdict IS 'Worst verdict of all instances: ok, notice, warning, critical; NULL if there are none; unknown if the snapshot is older than three intervals.';
COMMENT ON COLUMN HUGEPAGE.hp_host.memory_total IS 'Memory of the host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_host.memory_available IS 'MemAvailable, in bytes; NULL if unknown (before Linux 3.14).';
COMMENT ON COLUMN HUGEPAGE.hp_host.page_tables_host IS 'Page tables of the whole host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_host.huge_page_size IS 'Default huge page size, in bytes; NULL if the kernel has none.';
COMMENT ON COLUMN HUGEPAGE.hp_host.hugetlb IS 'Memory in huge page pools of all sizes, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hp_host.recommended_nr_hugepages IS 'Recommended pool of the default size for all instances, in pages.';
COMMENT ON COLUMN HUGEPAGE.hp_host.transparent_hugepage IS 'The kernel''s setting: always, madvise or never; NULL if it has none.';
COMMENT ON COLUMN HUGEPAGE.hp_host.hugetlb_shm_group IS 'ID of the group that may use huge pages in System V shared memory (vm.hugetlb_shm_group).';
COMMENT ON COLUMN HUGEPAGE.hp_host.kernel IS 'Kernel release, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hp_host.notes IS 'What could not be read and why, separated by semicolons; NULL if everything was read.';

PROMPT Creating the types

CREATE OR REPLACE TYPE HUGEPAGE.hp_pool_t AS OBJECT (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  page_size NUMBER(20),
  node NUMBER(20),
  is_default VARCHAR2(1),
  nr_hugepages NUMBER(20),
  free_hugepages NUMBER(20),
  resv_hugepages NUMBER(20),
  surplus_hugepages NUMBER(20),
  nr_overcommit_hugepages NUMBER(20),
  available_hugepages NUMBER(20),
  cgroup_limit NUMBER(20),
  cgroup_usage NUMBER(20),
  consistent VARCHAR2(1)
);
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_pool_c AS TABLE OF HUGEPAGE.hp_pool_t;
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_instance_t AS OBJECT (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  kind VARCHAR2(10),
  sid VARCHAR2(64),
  verdict VARCHAR2(8),
  message VARCHAR2(300),
  hint VARCHAR2(300),
  sga_in_huge_pages VARCHAR2(1),
  landed_in VARCHAR2(11),
  mapping VARCHAR2(32),
  page_size NUMBER(20),
  cause VARCHAR2(24),
  shared_memory NUMBER(20),
  huge_page_bytes NUMBER(20),
  base_page_bytes NUMBER(20),
  use_large_pages VARCHAR2(10),
  huge_page_size NUMBER(20),
  memlock NUMBER(20),
  memlock_unlimited VARCHAR2(1),
  pages_needed NUMBER(20),
  pages_missing NUMBER(20),
  nr_hugepages NUMBER(20),
  free_hugepages NUMBER(20),
  resv_hugepages NUMBER(20),
  surplus_hugepages NUMBER(20),
  available_hugepages NUMBER(20),
  page_tables_host NUMBER(20),
  transparent_hugepage VARCHAR2(8),
  restart_outlook VARCHAR2(8),
  recommended_nr_hugepages NUMBER(20),
  notes VARCHAR2(300),
  pid NUMBER(20),
  home VARCHAR2(160),
  started_utc VARCHAR2(19),
  processes NUMBER(20),
  page_tables_total NUMBER(20),
  memory_target VARCHAR2(1),
  version VARCHAR2(20),
  regression VARCHAR2(1),
  regression_utc VARCHAR2(19),
  regression_detail VARCHAR2(120),
  state VARCHAR2(8),
  starts_at_boot VARCHAR2(1),
  last_start_available NUMBER(20),
  last_start_expected NUMBER(20),
  last_start_allocated NUMBER(20),
  last_start_errors VARCHAR2(200),
  instance_host VARCHAR2(64),
  consistent VARCHAR2(1)
);
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_instance_c AS TABLE OF HUGEPAGE.hp_instance_t;
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_finding_t AS OBJECT (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  priority NUMBER(20),
  kind VARCHAR2(10),
  sid VARCHAR2(64),
  severity VARCHAR2(8),
  area VARCHAR2(12),
  setting VARCHAR2(100),
  current_value VARCHAR2(64),
  recommended VARCHAR2(64),
  command VARCHAR2(250),
  takes_effect VARCHAR2(16),
  saving NUMBER(20),
  reason VARCHAR2(400),
  instance_host VARCHAR2(64),
  consistent VARCHAR2(1)
);
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_finding_c AS TABLE OF HUGEPAGE.hp_finding_t;
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_host_t AS OBJECT (
  format_version NUMBER(20),
  snapshot_id VARCHAR2(16),
  snapshot_utc VARCHAR2(19),
  host_name VARCHAR2(64),
  pool_count NUMBER(20),
  instance_count NUMBER(20),
  finding_count NUMBER(20),
  interval_seconds NUMBER(20),
  sidecar_version VARCHAR2(30),
  verdict VARCHAR2(8),
  memory_total NUMBER(20),
  memory_available NUMBER(20),
  page_tables_host NUMBER(20),
  huge_page_size NUMBER(20),
  hugetlb NUMBER(20),
  recommended_nr_hugepages NUMBER(20),
  transparent_hugepage VARCHAR2(8),
  hugetlb_shm_group NUMBER(20),
  kernel VARCHAR2(64),
  notes VARCHAR2(400),
  consistent VARCHAR2(1)
);
/

CREATE OR REPLACE TYPE HUGEPAGE.hp_host_c AS TABLE OF HUGEPAGE.hp_host_t;
/

PROMPT Creating the package

CREATE OR REPLACE PACKAGE HUGEPAGE.hugepage_advisor AUTHID DEFINER AS
  -- Huge pages of this host, as written by hugepage-sidecar. age_seconds is the age of a row.
  c_version CONSTANT VARCHAR2(30) := '[VERSION]';

  -- The records of hp_pool.dat: p_route is FILE (by UTL_FILE) or TABLE (by the external table).
  FUNCTION pools(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_pool_c PIPELINED;

  -- The records of hp_instance.dat: p_route is FILE (by UTL_FILE) or TABLE (by the external table).
  FUNCTION instances(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_instance_c PIPELINED;

  -- The records of hp_finding.dat: p_route is FILE (by UTL_FILE) or TABLE (by the external table).
  FUNCTION findings(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_finding_c PIPELINED;

  -- The records of hp_host.dat: p_route is FILE (by UTL_FILE) or TABLE (by the external table).
  FUNCTION hosts(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_host_c PIPELINED;

  -- Seconds since a timestamp, which is text as in the files.
  FUNCTION age_seconds(p_snapshot_utc IN VARCHAR2) RETURN NUMBER;

  -- Y if the session is connected to that instance on that host (for an instance in a container: instance_host), otherwise N.
  FUNCTION this_instance(p_host_name IN VARCHAR2, p_sid IN VARCHAR2) RETURN VARCHAR2;

  -- Y if the last snapshot is older than p_seconds (by default three intervals of the sidecar) or unreadable, otherwise N.
  FUNCTION is_stale(p_seconds IN NUMBER DEFAULT NULL) RETURN VARCHAR2;

  -- One line for a monitoring system about an instance (by default this one). It begins with OK, NOTICE, WARNING, CRITICAL
  -- or UNKNOWN.
  FUNCTION check_instance(p_sid IN VARCHAR2 DEFAULT NULL) RETURN VARCHAR2;
END hugepage_advisor;
/
SHOW ERRORS

CREATE OR REPLACE PACKAGE BODY HUGEPAGE.hugepage_advisor AS
  -- The files are replaced one after the other: a read in between is repeated.
  c_attempts CONSTANT PLS_INTEGER := 20;
  c_stale CONSTANT VARCHAR2(60) := 'The last snapshot of hugepage-sidecar is stale.';
  TYPE lines_t IS TABLE OF VARCHAR2(1024);

  TYPE snapshot_t IS RECORD (
    pools hp_pool_c,
    instances hp_instance_c,
    findings hp_finding_c,
    hosts hp_host_c,
    consistent VARCHAR2(1)
  );
  -- A field of a record; NULL if it is empty, or if a record of an older version does not have it.
  FUNCTION field(p_line IN VARCHAR2, p_number IN PLS_INTEGER) RETURN VARCHAR2 IS
    l_start PLS_INTEGER := 1;
    l_end PLS_INTEGER;
  BEGIN
    IF p_number > 1 THEN
      l_start := INSTR(p_line, '|', 1, p_number - 1) + 1;
      IF l_start = 1 THEN
        RETURN NULL;
      END IF;
    END IF;
    l_end := INSTR(p_line || '|', '|', 1, p_number);
    RETURN SUBSTR(p_line, l_start, l_end - l_start);
  END field;

  -- The records of a file, without the header line.
  FUNCTION read_lines(p_file IN VARCHAR2) RETURN lines_t IS
    l_file UTL_FILE.FILE_TYPE;
    l_lines lines_t := lines_t();
    l_line VARCHAR2(1024);
  BEGIN
    l_file := UTL_FILE.FOPEN('HUGEPAGE_DIR', p_file, 'r', 1024);
    BEGIN
      UTL_FILE.GET_LINE(l_file, l_line);
      LOOP
        UTL_FILE.GET_LINE(l_file, l_line);
        l_lines.EXTEND;
        l_lines(l_lines.COUNT) := l_line;
      END LOOP;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        UTL_FILE.FCLOSE(l_file);
      WHEN OTHERS THEN
        UTL_FILE.FCLOSE(l_file);
        RAISE;
    END;
    RETURN l_lines;
  END read_lines;

  FUNCTION pools_in_file RETURN hp_pool_c IS
    l_lines lines_t := read_lines('hp_pool.dat');
    l_rows hp_pool_c := hp_pool_c();
  BEGIN
    FOR i IN 1 .. l_lines.COUNT LOOP
      l_rows.EXTEND;
      l_rows(l_rows.COUNT) := hp_pool_t(
        TO_NUMBER(field(l_lines(i), 1)),
        field(l_lines(i), 2),
        field(l_lines(i), 3),
        field(l_lines(i), 4),
        TO_NUMBER(field(l_lines(i), 5)),
        TO_NUMBER(field(l_lines(i), 6)),
        field(l_lines(i), 7),
        TO_NUMBER(field(l_lines(i), 8)),
        TO_NUMBER(field(l_lines(i), 9)),
        TO_NUMBER(field(l_lines(i), 10)),
        TO_NUMBER(field(l_lines(i), 11)),
        TO_NUMBER(field(l_lines(i), 12)),
        TO_NUMBER(field(l_lines(i), 13)),
        TO_NUMBER(field(l_lines(i), 14)),
        TO_NUMBER(field(l_lines(i), 15)),
        NULL
      );
    END LOOP;
    RETURN l_rows;
  END pools_in_file;

  FUNCTION pools_in_table RETURN hp_pool_c IS
    l_rows hp_pool_c;
  BEGIN
    SELECT hp_pool_t(
        t.format_version,
        t.snapshot_id,
        t.snapshot_utc,
        t.host_name,
        t.page_size,
        t.node,
        t.is_default,
        t.nr_hugepages,
        t.free_hugepages,
        t.resv_hugepages,
        t.surplus_hugepages,
        t.nr_overcommit_hugepages,
        t.available_hugepages,
        t.cgroup_limit,
        t.cgroup_usage,
        NULL
      )
      BULK COLLECT INTO l_rows
      FROM hp_pool t;
    RETURN l_rows;
  END pools_in_table;

  FUNCTION instances_in_file RETURN hp_instance_c IS
    l_lines lines_t := read_lines('hp_instance.dat');
    l_rows hp_instance_c := hp_instance_c();
  BEGIN
    FOR i IN 1 .. l_lines.COUNT LOOP
      l_rows.EXTEND;
      l_rows(l_rows.COUNT) := hp_instance_t(
        TO_NUMBER(field(l_lines(i), 1)),
        field(l_lines(i), 2),
        field(l_lines(i), 3),
        field(l_lines(i), 4),
        field(l_lines(i), 5),
        field(l_lines(i), 6),
        field(l_lines(i), 7),
        field(l_lines(i), 8),
        field(l_lines(i), 9),
        field(l_lines(i), 10),
        field(l_lines(i), 11),
        field(l_lines(i), 12),
        TO_NUMBER(field(l_lines(i), 13)),
        field(l_lines(i), 14),
        TO_NUMBER(field(l_lines(i), 15)),
        TO_NUMBER(field(l_lines(i), 16)),
        TO_NUMBER(field(l_lines(i), 17)),
        field(l_lines(i), 18),
        TO_NUMBER(field(l_lines(i), 19)),
        TO_NUMBER(field(l_lines(i), 20)),
        field(l_lines(i), 21),
        TO_NUMBER(field(l_lines(i), 22)),
        TO_NUMBER(field(l_lines(i), 23)),
        TO_NUMBER(field(l_lines(i), 24)),
        TO_NUMBER(field(l_lines(i), 25)),
        TO_NUMBER(field(l_lines(i), 26)),
        TO_NUMBER(field(l_lines(i), 27)),
        TO_NUMBER(field(l_lines(i), 28)),
        TO_NUMBER(field(l_lines(i), 29)),
        field(l_lines(i), 30),
        field(l_lines(i), 31),
        TO_NUMBER(field(l_lines(i), 32)),
        field(l_lines(i), 33),
        TO_NUMBER(field(l_lines(i), 34)),
        field(l_lines(i), 35),
        field(l_lines(i), 36),
        TO_NUMBER(field(l_lines(i), 37)),
        TO_NUMBER(field(l_lines(i), 38)),
        field(l_lines(i), 39),
        field(l_lines(i), 40),
        field(l_lines(i), 41),
        field(l_lines(i), 42),
        field(l_lines(i), 43),
        field(l_lines(i), 44),
        field(l_lines(i), 45),
        TO_NUMBER(field(l_lines(i), 46)),
        TO_NUMBER(field(l_lines(i), 47)),
        TO_NUMBER(field(l_lines(i), 48)),
        field(l_lines(i), 49),
        field(l_lines(i), 50),
        NULL
      );
    END LOOP;
    RETURN l_rows;
  END instances_in_file;

  FUNCTION instances_in_table RETURN hp_instance_c IS
    l_rows hp_instance_c;
  BEGIN
    SELECT hp_instance_t(
        t.format_version,
        t.snapshot_id,
        t.snapshot_utc,
        t.host_name,
        t.kind,
        t.sid,
        t.verdict,
        t.message,
        t.hint,
        t.sga_in_huge_pages,
        t.landed_in,
        t.mapping,
        t.page_size,
        t.cause,
        t.shared_memory,
        t.huge_page_bytes,
        t.base_page_bytes,
        t.use_large_pages,
        t.huge_page_size,
        t.memlock,
        t.memlock_unlimited,
        t.pages_needed,
        t.pages_missing,
        t.nr_hugepages,
        t.free_hugepages,
        t.resv_hugepages,
        t.surplus_hugepages,
        t.available_hugepages,
        t.page_tables_host,
        t.transparent_hugepage,
        t.restart_outlook,
        t.recommended_nr_hugepages,
        t.notes,
        t.pid,
        t.home,
        t.started_utc,
        t.processes,
        t.page_tables_total,
        t.memory_target,
        t.version,
        t.regression,
        t.regression_utc,
        t.regression_detail,
        t.state,
        t.starts_at_boot,
        t.last_start_available,
        t.last_start_expected,
        t.last_start_allocated,
        t.last_start_errors,
        t.instance_host,
        NULL
      )
      BULK COLLECT INTO l_rows
      FROM hp_instance t;
    RETURN l_rows;
  END instances_in_table;

  FUNCTION findings_in_file RETURN hp_finding_c IS
    l_lines lines_t := read_lines('hp_finding.dat');
    l_rows hp_finding_c := hp_finding_c();
  BEGIN
    FOR i IN 1 .. l_lines.COUNT LOOP
      l_rows.EXTEND;
      l_rows(l_rows.COUNT) := hp_finding_t(
        TO_NUMBER(field(l_lines(i), 1)),
        field(l_lines(i), 2),
        field(l_lines(i), 3),
        field(l_lines(i), 4),
        TO_NUMBER(field(l_lines(i), 5)),
        field(l_lines(i), 6),
        field(l_lines(i), 7),
        field(l_lines(i), 8),
        field(l_lines(i), 9),
        field(l_lines(i), 10),
        field(l_lines(i), 11),
        field(l_lines(i), 12),
        field(l_lines(i), 13),
        field(l_lines(i), 14),
        TO_NUMBER(field(l_lines(i), 15)),
        field(l_lines(i), 16),
        field(l_lines(i), 17),
        NULL
      );
    END LOOP;
    RETURN l_rows;
  END findings_in_file;

  FUNCTION findings_in_table RETURN hp_finding_c IS
    l_rows hp_finding_c;
  BEGIN
    SELECT hp_finding_t(
        t.format_version,
        t.snapshot_id,
        t.snapshot_utc,
        t.host_name,
        t.priority,
        t.kind,
        t.sid,
        t.severity,
        t.area,
        t.setting,
        t.current_value,
        t.recommended,
        t.command,
        t.takes_effect,
        t.saving,
        t.reason,
        t.instance_host,
        NULL
      )
      BULK COLLECT INTO l_rows
      FROM hp_finding t;
    RETURN l_rows;
  END findings_in_table;

  FUNCTION hosts_in_file RETURN hp_host_c IS
    l_lines lines_t := read_lines('hp_host.dat');
    l_rows hp_host_c := hp_host_c();
  BEGIN
    FOR i IN 1 .. l_lines.COUNT LOOP
      l_rows.EXTEND;
      l_rows(l_rows.COUNT) := hp_host_t(
        TO_NUMBER(field(l_lines(i), 1)),
        field(l_lines(i), 2),
        field(l_lines(i), 3),
        field(l_lines(i), 4),
        TO_NUMBER(field(l_lines(i), 5)),
        TO_NUMBER(field(l_lines(i), 6)),
        TO_NUMBER(field(l_lines(i), 7)),
        TO_NUMBER(field(l_lines(i), 8)),
        field(l_lines(i), 9),
        field(l_lines(i), 10),
        TO_NUMBER(field(l_lines(i), 11)),
        TO_NUMBER(field(l_lines(i), 12)),
        TO_NUMBER(field(l_lines(i), 13)),
        TO_NUMBER(field(l_lines(i), 14)),
        TO_NUMBER(field(l_lines(i), 15)),
        TO_NUMBER(field(l_lines(i), 16)),
        field(l_lines(i), 17),
        TO_NUMBER(field(l_lines(i), 18)),
        field(l_lines(i), 19),
        field(l_lines(i), 20),
        NULL
      );
    END LOOP;
    RETURN l_rows;
  END hosts_in_file;

  FUNCTION hosts_in_table RETURN hp_host_c IS
    l_rows hp_host_c;
  BEGIN
    SELECT hp_host_t(
        t.format_version,
        t.snapshot_id,
        t.snapshot_utc,
        t.host_name,
        t.pool_count,
        t.instance_count,
        t.finding_count,
        t.interval_seconds,
        t.sidecar_version,
        t.verdict,
        t.memory_total,
        t.memory_available,
        t.page_tables_host,
        t.huge_page_size,
        t.hugetlb,
        t.recommended_nr_hugepages,
        t.transparent_hugepage,
        t.hugetlb_shm_group,
        t.kernel,
        t.notes,
        NULL
      )
      BULK COLLECT INTO l_rows
      FROM hp_host t;
    RETURN l_rows;
  END hosts_in_table;

  -- Y if all records have the snapshot_id of the host record and the counts match, or if there are no records; otherwise N.
  FUNCTION consistency(p_snapshot IN snapshot_t) RETURN VARCHAR2 IS
    l_records PLS_INTEGER;
    l_host hp_host_t;
  BEGIN
    IF p_snapshot.hosts.COUNT = 0 THEN
      l_records := p_snapshot.pools.COUNT + p_snapshot.instances.COUNT + p_snapshot.findings.COUNT;
      RETURN CASE WHEN l_records = 0 THEN 'Y' ELSE 'N' END;
    END IF;
    l_host := p_snapshot.hosts(1);
    IF NVL(l_host.pool_count, -1) <> p_snapshot.pools.COUNT THEN
      RETURN 'N';
    END IF;
    FOR i IN 1 .. p_snapshot.pools.COUNT LOOP
      IF NVL(p_snapshot.pools(i).snapshot_id, '-') <> l_host.snapshot_id THEN
        RETURN 'N';
      END IF;
    END LOOP;
    IF NVL(l_host.instance_count, -1) <> p_snapshot.instances.COUNT THEN
      RETURN 'N';
    END IF;
    FOR i IN 1 .. p_snapshot.instances.COUNT LOOP
      IF NVL(p_snapshot.instances(i).snapshot_id, '-') <> l_host.snapshot_id THEN
        RETURN 'N';
      END IF;
    END LOOP;
    IF NVL(l_host.finding_count, -1) <> p_snapshot.findings.COUNT THEN
      RETURN 'N';
    END IF;
    FOR i IN 1 .. p_snapshot.findings.COUNT LOOP
      IF NVL(p_snapshot.findings(i).snapshot_id, '-') <> l_host.snapshot_id THEN
        RETURN 'N';
      END IF;
    END LOOP;
    RETURN 'Y';
  END consistency;

  FUNCTION age_seconds(p_snapshot_utc IN VARCHAR2) RETURN NUMBER IS
    l_now DATE := CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE);
  BEGIN
    RETURN ROUND((l_now - TO_DATE(p_snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN')) * 86400);
  END age_seconds;

  -- Y if there is no snapshot, or if it is older than p_seconds or, if that is NULL, than three intervals of the sidecar.
  FUNCTION staleness(p_snapshot IN snapshot_t, p_seconds IN NUMBER) RETURN VARCHAR2 IS
    l_host hp_host_t;
  BEGIN
    IF p_snapshot.hosts.COUNT = 0 THEN
      RETURN 'Y';
    END IF;
    l_host := p_snapshot.hosts(1);
    -- A snapshot from the future is stale, too: the clock was set back.
    IF ABS(age_seconds(l_host.snapshot_utc)) <= NVL(p_seconds, NVL(3 * l_host.interval_seconds, 300)) THEN
      RETURN 'N';
    END IF;
    RETURN 'Y';
  END staleness;

  FUNCTION snapshot(p_route IN VARCHAR2) RETURN snapshot_t IS
    l_snapshot snapshot_t;
  BEGIN
    FOR attempt IN 1 .. c_attempts LOOP
      IF p_route = 'TABLE' THEN
        l_snapshot.pools := pools_in_table();
        l_snapshot.instances := instances_in_table();
        l_snapshot.findings := findings_in_table();
        l_snapshot.hosts := hosts_in_table();
      ELSE
        l_snapshot.pools := pools_in_file();
        l_snapshot.instances := instances_in_file();
        l_snapshot.findings := findings_in_file();
        l_snapshot.hosts := hosts_in_file();
      END IF;
      l_snapshot.consistent := consistency(l_snapshot);
      EXIT WHEN l_snapshot.consistent = 'Y';
    END LOOP;
    RETURN l_snapshot;
  END snapshot;

  FUNCTION pools(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_pool_c PIPELINED IS
    l_snapshot snapshot_t;
    l_row hp_pool_t;
  BEGIN
    l_snapshot := snapshot(p_route);
    FOR i IN 1 .. l_snapshot.pools.COUNT LOOP
      l_row := l_snapshot.pools(i);
      l_row.consistent := l_snapshot.consistent;
      PIPE ROW (l_row);
    END LOOP;
    RETURN;
  END pools;

  FUNCTION instances(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_instance_c PIPELINED IS
    l_snapshot snapshot_t;
    l_row hp_instance_t;
    l_stale VARCHAR2(1);
  BEGIN
    l_snapshot := snapshot(p_route);
    l_stale := staleness(l_snapshot, NULL);
    FOR i IN 1 .. l_snapshot.instances.COUNT LOOP
      l_row := l_snapshot.instances(i);
      l_row.consistent := l_snapshot.consistent;
      IF l_stale = 'Y' THEN
        l_row.verdict := 'unknown';
        l_row.message := c_stale;
        l_row.hint := NULL;
      END IF;
      PIPE ROW (l_row);
    END LOOP;
    RETURN;
  END instances;

  FUNCTION findings(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_finding_c PIPELINED IS
    l_snapshot snapshot_t;
    l_row hp_finding_t;
  BEGIN
    l_snapshot := snapshot(p_route);
    FOR i IN 1 .. l_snapshot.findings.COUNT LOOP
      l_row := l_snapshot.findings(i);
      l_row.consistent := l_snapshot.consistent;
      PIPE ROW (l_row);
    END LOOP;
    RETURN;
  END findings;

  FUNCTION hosts(p_route IN VARCHAR2 DEFAULT 'FILE') RETURN hp_host_c PIPELINED IS
    l_snapshot snapshot_t;
    l_row hp_host_t;
    l_stale VARCHAR2(1);
  BEGIN
    l_snapshot := snapshot(p_route);
    l_stale := staleness(l_snapshot, NULL);
    FOR i IN 1 .. l_snapshot.hosts.COUNT LOOP
      l_row := l_snapshot.hosts(i);
      l_row.consistent := l_snapshot.consistent;
      IF l_stale = 'Y' THEN
        l_row.verdict := 'unknown';
      END IF;
      PIPE ROW (l_row);
    END LOOP;
    RETURN;
  END hosts;

  FUNCTION first_label(p_host_name IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    RETURN LOWER(SUBSTR(p_host_name, 1, INSTR(p_host_name || '.', '.') - 1));
  END first_label;

  FUNCTION this_instance(p_host_name IN VARCHAR2, p_sid IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    IF first_label(p_host_name) = first_label(SYS_CONTEXT('USERENV', 'SERVER_HOST'))
      AND UPPER(p_sid) = UPPER(SYS_CONTEXT('USERENV', 'INSTANCE_NAME'))
    THEN
      RETURN 'Y';
    END IF;
    RETURN 'N';
  END this_instance;

  FUNCTION is_stale(p_seconds IN NUMBER DEFAULT NULL) RETURN VARCHAR2 IS
    l_snapshot snapshot_t;
  BEGIN
    l_snapshot := snapshot('FILE');
    RETURN staleness(l_snapshot, p_seconds);
  EXCEPTION
    WHEN OTHERS THEN
      RETURN 'Y';
  END is_stale;

  FUNCTION check_instance(p_sid IN VARCHAR2 DEFAULT NULL) RETURN VARCHAR2 IS
    l_snapshot snapshot_t;
    l_row hp_instance_t;
    l_wanted VARCHAR2(1);
  BEGIN
    l_snapshot := snapshot('FILE');
    IF staleness(l_snapshot, NULL) = 'Y' THEN
      RETURN 'UNKNOWN: ' || c_stale;
    END IF;
    FOR i IN 1 .. l_snapshot.instances.COUNT LOOP
      l_row := l_snapshot.instances(i);
      IF p_sid IS NULL THEN
        l_wanted := this_instance(NVL(l_row.instance_host, l_row.host_name), l_row.sid);
      ELSIF UPPER(l_row.sid) = UPPER(p_sid) THEN
        l_wanted := 'Y';
      ELSE
        l_wanted := 'N';
      END IF;
      IF l_wanted = 'Y' AND l_row.kind <> 'postgresql' THEN
        RETURN UPPER(l_row.verdict) || ': ' || l_row.message || ' ' || l_row.hint;
      END IF;
    END LOOP;
    RETURN 'UNKNOWN: hugepage-sidecar found no such instance on this host.';
  EXCEPTION
    WHEN OTHERS THEN
      RETURN 'UNKNOWN: ' || SQLERRM;
  END check_instance;
END hugepage_advisor;
/
SHOW ERRORS

PROMPT Creating the views

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_status AS
SELECT
  r.sid AS sid,
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  HUGEPAGE.hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid) AS this_instance,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.kind AS kind,
  r.verdict AS verdict,
  r.message AS message,
  CASE WHEN EXISTS (SELECT 1 FROM session_roles WHERE role = 'DBA') THEN r.hint END AS hint,
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
FROM TABLE(HUGEPAGE.hugepage_advisor.instances()) r
WHERE r.kind <> 'postgresql';

COMMENT ON TABLE HUGEPAGE.hugepage_status IS 'Huge pages of the Oracle instances of this host: one row per instance.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.sid IS 'ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.age_seconds IS 'Age of the snapshot in seconds.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.this_instance IS 'Y for the instance of this session, otherwise N.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.consistent IS 'Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.kind IS 'Kind of instance: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.verdict IS 'Ok (as configured, also after a restart), notice, warning or critical; unknown if the snapshot is older than three intervals.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.message IS 'The state in one sentence.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.hint IS 'What to do, and whom its number counts; NULL if nothing, and without the role DBA. If it does not fit, a sentence on where it is.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.sga_in_huge_pages IS 'Whether the whole SGA (PostgreSQL: shared memory) is in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.landed_in IS 'The pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.mapping IS 'The kernel''s name of the mapping: anon_hugepage, zero, SYSV...; for Oracle of the largest segment.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.page_size IS 'Page size of the mapping, in bytes; for a mixed SGA the huge page size.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.cause IS 'Why the SGA is not in huge pages: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit, shm_group, shm_limit, memory_target, page_size_unsupported, sysv_shared_memory, node_limit or unknown; NULL if it is as configured.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.shared_memory IS 'Size of the main segment, in bytes; for Oracle of the whole SGA.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.huge_page_bytes IS 'Part of shared memory in huge pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.base_page_bytes IS 'Part of shared memory in base pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.use_large_pages IS 'Parameter use_large_pages (PostgreSQL: huge_pages), as far as visible from outside.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.huge_page_size IS 'The huge page size in effect, in bytes; the columns of the pool are for this size.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.memlock IS 'Max locked memory of the running instance (memlock), in bytes; NULL if unknown or unlimited.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.memlock_unlimited IS 'Whether memlock is unlimited.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.pages_needed IS 'Huge pages that the running segment has or would need.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.pages_missing IS 'Needed pages that are not available now; 0 in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.nr_hugepages IS 'Pages in the pool, surplus included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.free_hugepages IS 'Free pages, reserved ones included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.resv_hugepages IS 'Free pages that are reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.surplus_hugepages IS 'Pages beyond the configured size, which the kernel frees after use.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.available_hugepages IS 'Free pages that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.page_tables_host IS 'Page tables of the whole host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.transparent_hugepage IS 'The kernel''s setting: always, madvise or never; NULL if it has none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.restart_outlook IS 'What a start with the configuration on disk would get: hugetlb, base, fails or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.recommended_nr_hugepages IS 'Recommended pages in the pool, for this server and all others that are seen; never less than the pool has.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.notes IS 'What could not be read and why, separated by semicolons; NULL if everything was read.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.pid IS 'Process id of PMON (PostgreSQL: postmaster).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.home IS 'ORACLE_HOME (PostgreSQL: data directory).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.started_utc IS 'When the instance started, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.processes IS 'Processes of the instance.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.page_tables_total IS 'The server''s page tables, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.memory_target IS 'Whether MEMORY_TARGET is set (AMM), which excludes huge pages; NULL for a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.version IS 'Version from the alert log or PG_VERSION.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.regression IS 'Whether the last start lost huge pages, which are still lost; N if no history of the server or of `watch` shows it.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.regression_utc IS 'When that start was first observed, UTC; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.regression_detail IS 'What was lost, such as: was in huge pages of 2 MB, is in 4 kB pages; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.state IS 'State of the instance: running; stopped (Oracle, listed in oratab); failed (the same, and its last start ended with an error about memory).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.starts_at_boot IS 'Whether oratab or Grid Infrastructure starts the instance at boot; NULL if it is running or a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.last_start_available IS 'AVAILABLE_PAGES of huge_page_size in the alert log of the last start (since 12.1).';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.last_start_expected IS 'EXPECTED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.last_start_allocated IS 'ALLOCATED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.last_start_errors IS 'ERROR(s) of that table and errors of that start, separated by semicolons; NULL if there are none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_status.instance_host IS 'Name of the host as the instance sees it, if it is in a container with another name and the record has room for it.';

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_pools AS
SELECT
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.page_size AS page_size,
  r.node AS node,
  r.is_default AS is_default,
  r.nr_hugepages AS nr_hugepages,
  r.free_hugepages AS free_hugepages,
  r.resv_hugepages AS resv_hugepages,
  r.surplus_hugepages AS surplus_hugepages,
  r.nr_overcommit_hugepages AS nr_overcommit_hugepages,
  r.available_hugepages AS available_hugepages,
  r.cgroup_limit AS cgroup_limit,
  r.cgroup_usage AS cgroup_usage
FROM TABLE(HUGEPAGE.hugepage_advisor.pools()) r;

COMMENT ON TABLE HUGEPAGE.hugepage_pools IS 'Pools of huge pages of this host: one row per page size, and one per NUMA node.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.age_seconds IS 'Age of the snapshot in seconds.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.consistent IS 'Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.page_size IS 'Page size of the pool, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.node IS 'NUMA node; NULL for the pool of the whole host.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.is_default IS 'Whether mappings that ask for no size get this size.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.nr_hugepages IS 'Pages in the pool, surplus included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.free_hugepages IS 'Free pages, reserved ones included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.resv_hugepages IS 'Free pages that are reserved; NULL for a NUMA node, where the kernel does not count them.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.surplus_hugepages IS 'Pages beyond the configured size, which the kernel frees after use.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.nr_overcommit_hugepages IS 'Surplus pages that the kernel may allocate; NULL for a NUMA node.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.available_hugepages IS 'Free pages that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.cgroup_limit IS 'The cgroup limit that leaves the least, in bytes; NULL if none is visible.';
COMMENT ON COLUMN HUGEPAGE.hugepage_pools.cgroup_usage IS 'Usage that counts against cgroup_limit, in bytes.';

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_instances AS
SELECT
  r.sid AS sid,
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  HUGEPAGE.hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid) AS this_instance,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.kind AS kind,
  r.verdict AS verdict,
  r.message AS message,
  CASE WHEN EXISTS (SELECT 1 FROM session_roles WHERE role = 'DBA') THEN r.hint END AS hint,
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
FROM TABLE(HUGEPAGE.hugepage_advisor.instances()) r;

COMMENT ON TABLE HUGEPAGE.hugepage_instances IS 'Huge pages of all instances of this host, including PostgreSQL servers: one row per instance.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.sid IS 'ORACLE_SID of an Oracle instance; data directory of a PostgreSQL server, truncated to 64 (home has the full path).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.age_seconds IS 'Age of the snapshot in seconds.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.this_instance IS 'Y for the instance of this session, otherwise N.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.consistent IS 'Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.kind IS 'Kind of instance: oracle (a database), asm, mgmtdb, apx, ios, or postgresql.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.verdict IS 'Ok (as configured, also after a restart), notice, warning or critical; unknown if the snapshot is older than three intervals.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.message IS 'The state in one sentence.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.hint IS 'What to do, and whom its number counts; NULL if nothing, and without the role DBA. If it does not fit, a sentence on where it is.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.sga_in_huge_pages IS 'Whether the whole SGA (PostgreSQL: shared memory) is in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.landed_in IS 'The pages that shared memory is in: hugetlb, thp, partial thp, base or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.mapping IS 'The kernel''s name of the mapping: anon_hugepage, zero, SYSV...; for Oracle of the largest segment.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.page_size IS 'Page size of the mapping, in bytes; for a mixed SGA the huge page size.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.cause IS 'Why the SGA is not in huge pages: disabled, pool_empty, pool_too_small, pool_taken, cgroup_limit, memlock_limit, shm_group, shm_limit, memory_target, page_size_unsupported, sysv_shared_memory, node_limit or unknown; NULL if it is as configured.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.shared_memory IS 'Size of the main segment, in bytes; for Oracle of the whole SGA.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.huge_page_bytes IS 'Part of shared memory in huge pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.base_page_bytes IS 'Part of shared memory in base pages, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.use_large_pages IS 'Parameter use_large_pages (PostgreSQL: huge_pages), as far as visible from outside.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.huge_page_size IS 'The huge page size in effect, in bytes; the columns of the pool are for this size.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.memlock IS 'Max locked memory of the running instance (memlock), in bytes; NULL if unknown or unlimited.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.memlock_unlimited IS 'Whether memlock is unlimited.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.pages_needed IS 'Huge pages that the running segment has or would need.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.pages_missing IS 'Needed pages that are not available now; 0 in huge pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.nr_hugepages IS 'Pages in the pool, surplus included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.free_hugepages IS 'Free pages, reserved ones included.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.resv_hugepages IS 'Free pages that are reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.surplus_hugepages IS 'Pages beyond the configured size, which the kernel frees after use.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.available_hugepages IS 'Free pages that are not reserved.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.page_tables_host IS 'Page tables of the whole host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.transparent_hugepage IS 'The kernel''s setting: always, madvise or never; NULL if it has none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.restart_outlook IS 'What a start with the configuration on disk would get: hugetlb, base, fails or unknown; for Oracle also mixed.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.recommended_nr_hugepages IS 'Recommended pages in the pool, for this server and all others that are seen; never less than the pool has.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.notes IS 'What could not be read and why, separated by semicolons; NULL if everything was read.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.pid IS 'Process id of PMON (PostgreSQL: postmaster).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.home IS 'ORACLE_HOME (PostgreSQL: data directory).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.started_utc IS 'When the instance started, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.processes IS 'Processes of the instance.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.page_tables_total IS 'The server''s page tables, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.memory_target IS 'Whether MEMORY_TARGET is set (AMM), which excludes huge pages; NULL for a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.version IS 'Version from the alert log or PG_VERSION.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.regression IS 'Whether the last start lost huge pages, which are still lost; N if no history of the server or of `watch` shows it.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.regression_utc IS 'When that start was first observed, UTC; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.regression_detail IS 'What was lost, such as: was in huge pages of 2 MB, is in 4 kB pages; NULL if there is no regression.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.state IS 'State of the instance: running; stopped (Oracle, listed in oratab); failed (the same, and its last start ended with an error about memory).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.starts_at_boot IS 'Whether oratab or Grid Infrastructure starts the instance at boot; NULL if it is running or a PostgreSQL server.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.last_start_available IS 'AVAILABLE_PAGES of huge_page_size in the alert log of the last start (since 12.1).';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.last_start_expected IS 'EXPECTED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.last_start_allocated IS 'ALLOCATED_PAGES of that start.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.last_start_errors IS 'ERROR(s) of that table and errors of that start, separated by semicolons; NULL if there are none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_instances.instance_host IS 'Name of the host as the instance sees it, if it is in a container with another name and the record has room for it.';

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_findings AS
SELECT
  r.sid AS sid,
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  HUGEPAGE.hugepage_advisor.this_instance(NVL(r.instance_host, r.host_name), r.sid) AS this_instance,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.priority AS priority,
  r.kind AS kind,
  r.severity AS severity,
  r.area AS area,
  r.setting AS setting,
  r.current_value AS current_value,
  r.recommended AS recommended,
  CASE WHEN EXISTS (SELECT 1 FROM session_roles WHERE role = 'DBA') THEN r.command END AS command,
  r.takes_effect AS takes_effect,
  r.saving AS saving,
  r.reason AS reason,
  r.instance_host AS instance_host
FROM TABLE(HUGEPAGE.hugepage_advisor.findings()) r;

COMMENT ON TABLE HUGEPAGE.hugepage_findings IS 'Recommendations for this host, ordered by priority: one row per setting.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.sid IS 'SID of the instance, as in hp_instance.dat; NULL for the host.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.age_seconds IS 'Age of the snapshot in seconds.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.this_instance IS 'Y for the instance of this session, otherwise N.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.consistent IS 'Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.priority IS '1 is the most urgent.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.kind IS 'Kind of the instance, as in hp_instance.dat; NULL for the host.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.severity IS 'Severity of the recommendation: ok, notice, warning or critical.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.area IS 'Where the setting belongs: postgresql, kernel, boot, limits, cgroup or oracle.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.setting IS 'Its name in the file or command that sets it.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.current_value IS 'Its current value; NULL if none or unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.recommended IS 'The recommended value; NULL if no possible value suffices.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.command IS 'The complete command; NULL if there is none, without the role DBA, or if it does not fit: hugepage-sidecar status has it.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.takes_effect IS 'Now, server restart or reboot.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.saving IS 'Memory that it frees, in bytes; NULL if none or unknown.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.reason IS 'Why, with the numbers of this host.';
COMMENT ON COLUMN HUGEPAGE.hugepage_findings.instance_host IS 'Name of the host as the instance sees it, as in hp_instance.dat.';

CREATE OR REPLACE VIEW HUGEPAGE.hugepage_hosts AS
SELECT
  TO_DATE(r.snapshot_utc, 'YYYY-MM-DD HH24:MI:SS', 'NLS_CALENDAR=GREGORIAN') AS snapshot_utc,
  HUGEPAGE.hugepage_advisor.age_seconds(r.snapshot_utc) AS age_seconds,
  r.consistent AS consistent,
  r.host_name AS host_name,
  r.pool_count AS pool_count,
  r.instance_count AS instance_count,
  r.finding_count AS finding_count,
  r.interval_seconds AS interval_seconds,
  r.sidecar_version AS sidecar_version,
  r.verdict AS verdict,
  r.memory_total AS memory_total,
  r.memory_available AS memory_available,
  r.page_tables_host AS page_tables_host,
  r.huge_page_size AS huge_page_size,
  r.hugetlb AS hugetlb,
  r.recommended_nr_hugepages AS recommended_nr_hugepages,
  r.transparent_hugepage AS transparent_hugepage,
  r.hugetlb_shm_group AS hugetlb_shm_group,
  r.kernel AS kernel,
  r.notes AS notes
FROM TABLE(HUGEPAGE.hugepage_advisor.hosts()) r;

COMMENT ON TABLE HUGEPAGE.hugepage_hosts IS 'The memory of this host: one row.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.snapshot_utc IS 'When the snapshot was taken, UTC.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.age_seconds IS 'Age of the snapshot in seconds.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.consistent IS 'Y if all files are of one snapshot; N if they were being replaced: repeat the query before comparing views.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.host_name IS 'Name of the host, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.pool_count IS 'Number of records in hp_pool.dat.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.instance_count IS 'Number of records in hp_instance.dat.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.finding_count IS 'Number of records in hp_finding.dat.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.interval_seconds IS 'Seconds until the next snapshot; NULL if this one was taken manually.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.sidecar_version IS 'Version of hugepage-sidecar.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.verdict IS 'Worst verdict of all instances: ok, notice, warning, critical; NULL if there are none; unknown if the snapshot is older than three intervals.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.memory_total IS 'Memory of the host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.memory_available IS 'MemAvailable, in bytes; NULL if unknown (before Linux 3.14).';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.page_tables_host IS 'Page tables of the whole host, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.huge_page_size IS 'Default huge page size, in bytes; NULL if the kernel has none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.hugetlb IS 'Memory in huge page pools of all sizes, in bytes.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.recommended_nr_hugepages IS 'Recommended pool of the default size for all instances, in pages.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.transparent_hugepage IS 'The kernel''s setting: always, madvise or never; NULL if it has none.';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.hugetlb_shm_group IS 'ID of the group that may use huge pages in System V shared memory (vm.hugetlb_shm_group).';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.kernel IS 'Kernel release, from uname(2).';
COMMENT ON COLUMN HUGEPAGE.hugepage_hosts.notes IS 'What could not be read and why, separated by semicolons; NULL if everything was read.';


PROMPT Granting to the role HUGEPAGE_READER

-- Only the views: whoever may select from one needs no privilege on the package, which returns commands for root.
GRANT SELECT ON HUGEPAGE.hugepage_status TO HUGEPAGE_READER;
GRANT SELECT ON HUGEPAGE.hugepage_pools TO HUGEPAGE_READER;
GRANT SELECT ON HUGEPAGE.hugepage_instances TO HUGEPAGE_READER;
GRANT SELECT ON HUGEPAGE.hugepage_findings TO HUGEPAGE_READER;
GRANT SELECT ON HUGEPAGE.hugepage_hosts TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_pool_t TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_pool_c TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_instance_t TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_instance_c TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_finding_t TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_finding_c TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_host_t TO HUGEPAGE_READER;
GRANT EXECUTE ON HUGEPAGE.hp_host_c TO HUGEPAGE_READER;

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

PROMPT Done. GRANT HUGEPAGE_READER TO the users of the views, then: SELECT * FROM HUGEPAGE.hugepage_status
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
