-- Huge pages of this host as tables of Oracle Database with current values: hp_pool_live and hp_host_live.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 11.2 to 23ai on Linux. Optional: hugepage_pools and hugepage_hosts
-- have the same columns of the last snapshot.
--
-- READ THIS FIRST. These tables make the database run a program on the host at every SELECT.
-- 1. EXECUTE on a directory lets its grantee run any program in it. The directory must contain only this wrapper, belong to
--    root, and be writable by root only. Never grant WRITE on it, and never grant EXECUTE on HUGEPAGE_DIR.
-- 2. The program runs as the user of the instance (of a PDB with PDB_OS_CREDENTIAL: as that user), without an environment. It
--    can read the pools and the host, but not the memory of the instances, so there is no live table of instances.
-- 3. Oracle Database Vault disables PREPROCESSOR, and security policies may forbid it.
--
-- As root, on every host of the database, before this script:
--    install -d -o root -g root -m 0755 /usr/local/lib/hugepage-sidecar
--    cat >/usr/local/lib/hugepage-sidecar/hugepage_live.sh <<'END'
--    #!/bin/sh
--    exec /usr/bin/hugepage-sidecar oracle print "${1##*/}"
--    END
--    chmod 0755 /usr/local/lib/hugepage-sidecar/hugepage_live.sh
-- Run this script like the installation script, with the same names. The uninstallation script removes the tables,
-- and DROP DIRECTORY HUGEPAGE_DIR_BIN the directory.
SET DEFINE OFF
SET ECHO OFF
SET FEEDBACK OFF
SET SERVEROUTPUT ON
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK

CREATE DIRECTORY HUGEPAGE_DIR_BIN AS '/usr/local/lib/hugepage-sidecar';

GRANT EXECUTE ON DIRECTORY HUGEPAGE_DIR_BIN TO HUGEPAGE;

CREATE TABLE HUGEPAGE.hp_pool_live (
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
  obtainable_now NUMBER(20)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII PREPROCESSOR HUGEPAGE_DIR_BIN:'hugepage_live.sh' SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
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
      cgroup_usage CHAR(20),
      obtainable_now CHAR(20)
    )
  )
  LOCATION ('hp_pool.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_pool_live IS 'A pool of huge pages: one record per page size, and one per NUMA node. Read at every SELECT.';

CREATE TABLE HUGEPAGE.hp_host_live (
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
  segment_count NUMBER(20),
  start_count NUMBER(20),
  sga_total NUMBER(20),
  mga_total NUMBER(20),
  pga_limit_total NUMBER(20)
)
ORGANIZATION EXTERNAL (
  TYPE ORACLE_LOADER
  DEFAULT DIRECTORY HUGEPAGE_DIR
  ACCESS PARAMETERS (
    RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII PREPROCESSOR HUGEPAGE_DIR_BIN:'hugepage_live.sh' SKIP 1 NOBADFILE NODISCARDFILE NOLOGFILE
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
      notes CHAR(400),
      segment_count CHAR(20),
      start_count CHAR(20),
      sga_total CHAR(20),
      mga_total CHAR(20),
      pga_limit_total CHAR(20)
    )
  )
  LOCATION ('hp_host.dat')
)
REJECT LIMIT 0
NOPARALLEL;

COMMENT ON TABLE HUGEPAGE.hp_host_live IS 'The host: one record. Read at every SELECT.';

PROMPT Done. Users of these tables need SELECT on the table, READ on HUGEPAGE_DIR and EXECUTE on HUGEPAGE_DIR_BIN
-- The defaults of SQL*Plus, because the settings above would outlast this script. After an error it has exited.
WHENEVER SQLERROR CONTINUE NONE
WHENEVER OSERROR CONTINUE NONE
SET SERVEROUTPUT OFF
SET FEEDBACK 6
SET DEFINE ON
