-- In a container a call says in a notice what it does not see of the host.
SET client_min_messages = warning;
-- pg_monitor may read all views, others none; no result depends on search_path.
CREATE ROLE regress_hugepages_monitor IN ROLE pg_monitor;
CREATE ROLE regress_hugepages_other;

SET ROLE regress_hugepages_other;
SELECT verdict FROM hugepage_status;
SELECT * FROM hugepage_status();
SELECT * FROM hugepage_pools;
SELECT * FROM hugepage_nodes;
SELECT * FROM hugepage_segments(true);
SELECT * FROM hugepage_backends;
SELECT * FROM hugepage_preflight();
SELECT * FROM hugepage_preflight(max_connections => 10);
SELECT * FROM hugepage_recommendations;
SELECT * FROM hugepage_history;
SELECT * FROM hugepage_findings;
RESET ROLE;

-- PUBLIC may use no function and no view of the extension.
SELECT p.proname FROM pg_proc p
WHERE p.proname LIKE 'hugepage\_%' AND has_function_privilege('regress_hugepages_other', p.oid, 'EXECUTE');
SELECT c.relname FROM pg_class c
WHERE c.relname LIKE 'hugepage\_%' AND has_table_privilege('regress_hugepages_other', c.oid, 'SELECT');
SELECT p.proname FROM pg_proc p
WHERE p.proname LIKE 'hugepage\_%' AND NOT has_function_privilege('regress_hugepages_monitor', p.oid, 'EXECUTE');

SET ROLE regress_hugepages_monitor;
SELECT count(*) FROM hugepage_status;
SELECT count(*) > 0 AS pools FROM hugepage_pools;
SELECT count(*) >= 0 AS nodes FROM hugepage_nodes;
SELECT count(*) > 0 AS segments FROM hugepage_segments;
SELECT count(*) > 0 AS detail FROM hugepage_segments(true);
SELECT count(*) > 0 AS backends FROM hugepage_backends;
SELECT count(*) FROM hugepage_page_tables;
SELECT count(*) FROM hugepage_preflight();
SELECT count(*) FROM hugepage_preflight(max_connections => 10);
SELECT count(*) >= 0 AS recommendations FROM hugepage_recommendations;
SELECT count(*) > 0 AS host FROM hugepage_host;
SELECT count(*) >= 0 AS history FROM hugepage_history;
SELECT count(*) >= 0 AS findings FROM hugepage_findings;
SET pg_hugepages.reserve_percent = 0;
RESET ROLE;

DROP ROLE regress_hugepages_monitor;
DROP ROLE regress_hugepages_other;

-- The extension can be moved to another schema, and its views work there.
CREATE SCHEMA "Odd Schema";
ALTER EXTENSION pg_hugepages SET SCHEMA "Odd Schema";
SELECT count(*) FROM "Odd Schema".hugepage_status;
DROP EXTENSION pg_hugepages;
CREATE EXTENSION pg_hugepages SCHEMA "Odd Schema";
SET search_path = pg_catalog;
SELECT count(*) FROM "Odd Schema".hugepage_status;
DROP EXTENSION pg_hugepages;
DROP SCHEMA "Odd Schema";
