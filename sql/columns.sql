-- The names and types that monitoring systems rely on.
CREATE EXTENSION pg_hugepages;

SELECT c.relname AS view, a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'v' AND c.relname LIKE 'hugepage\_%'
ORDER BY c.relname, a.attnum;

-- Every view, column and function has a comment.
SELECT c.relname, a.attname
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'v' AND c.relname LIKE 'hugepage\_%'
  AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL);

SELECT p.proname, p.provolatile, p.proparallel, p.proretset
FROM pg_proc p
WHERE p.proname LIKE 'hugepage\_%'
ORDER BY p.proname;

-- Arguments and results of functions without a view.
SELECT p.proname, pg_get_function_arguments(p.oid) AS arguments, coalesce(a.attname, pg_get_function_result(p.oid)) AS result,
       format_type(a.atttypid, a.atttypmod) AS type
FROM pg_proc p
JOIN pg_type t ON t.oid = p.prorettype
LEFT JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0
WHERE p.proname LIKE 'hugepage\_%' AND p.proname NOT IN (SELECT relname FROM pg_class)
ORDER BY p.proname, a.attnum;

SELECT p.proname FROM pg_proc p
WHERE p.proname LIKE 'hugepage\_%' AND obj_description(p.oid, 'pg_proc') IS NULL;
