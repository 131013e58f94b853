-- hugepage_status of many servers in one view, without Prometheus: one server queries the others by postgres_fdw.
--
--   psql -d postgres -f fleet.sql
--   SELECT hugepage_fleet.add('orders', host => 'db1.example.org', username => 'monitor', password => '...');
--   SELECT * FROM hugepage_fleet.status;
--
-- For up to ten servers: they are queried one after the other, and one that is down takes 5 seconds. For more, use Prometheus.
-- Run it as a superuser in a database of any server; it may be run again. On each server, the role needs pg_monitor, and
-- the database needs the extension. Without a password, use a role that pg_hba.conf there accepts by certificate, or a
-- passfile of this server's user. Members of pg_monitor may read the view.

\set ON_ERROR_STOP on
BEGIN;

CREATE EXTENSION IF NOT EXISTS postgres_fdw;
CREATE SCHEMA IF NOT EXISTS hugepage_fleet;

-- Adds a server, or replaces it. schema: the schema of the extension on that server.
CREATE OR REPLACE FUNCTION hugepage_fleet.add(
    server text, host text, port int DEFAULT 5432, dbname text DEFAULT 'postgres',
    username text DEFAULT 'monitor', password text DEFAULT NULL, schema text DEFAULT 'public')
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text := 'hugepage_fleet_' || add.server;
BEGIN
    PERFORM hugepage_fleet.remove(add.server);
    EXECUTE format(
        'CREATE SERVER %I FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L, connect_timeout %L)',
        name, add.host, add.port, add.dbname, '5');
    EXECUTE format('CREATE USER MAPPING FOR CURRENT_USER SERVER %I OPTIONS (user %L, %s)', name, add.username,
        CASE WHEN add.password IS NULL THEN format('password_required %L', 'false')
             ELSE format('password %L', add.password) END);
    -- Only columns that every version of the view has.
    EXECUTE format(
        'CREATE FOREIGN TABLE hugepage_fleet.%I (verdict text, message text, hint text, landed_in text, page_size bigint,
             cause text, restart_outlook text, shared_memory bigint, pages_needed bigint, pages_missing bigint,
             nr_hugepages bigint, recommended_nr_hugepages bigint, page_tables_host bigint, notes text[])
         SERVER %I OPTIONS (schema_name %L, table_name %L)',
        'on_' || add.server, name, add.schema, 'hugepage_status');
END
$$;

-- Removes a server; no error if there is none of that name.
CREATE OR REPLACE FUNCTION hugepage_fleet.remove(server text) RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET client_min_messages = warning
AS $$
BEGIN
    EXECUTE format('DROP SERVER IF EXISTS %I CASCADE', 'hugepage_fleet_' || server);
END
$$;

-- One row for each server; the column error has the reason if a server could not be queried.
CREATE OR REPLACE FUNCTION hugepage_fleet.status(
    OUT server text, OUT verdict text, OUT message text, OUT hint text, OUT landed_in text, OUT page_size bigint,
    OUT cause text, OUT restart_outlook text, OUT shared_memory bigint, OUT pages_needed bigint,
    OUT pages_missing bigint, OUT nr_hugepages bigint, OUT recommended_nr_hugepages bigint, OUT page_tables_host bigint,
    OUT notes text[], OUT error text)
RETURNS SETOF record
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    each record;
    detail text;
BEGIN
    FOR each IN
        SELECT substr(c.relname, length('on_') + 1) AS server, c.oid::regclass AS relation
        FROM pg_foreign_table t JOIN pg_class c ON c.oid = t.ftrelid
        WHERE c.relnamespace = 'hugepage_fleet'::regnamespace
        ORDER BY 1
    LOOP
        BEGIN
            RETURN QUERY EXECUTE format('SELECT %L, *, NULL::text FROM %s', each.server, each.relation);
        EXCEPTION WHEN OTHERS THEN
            -- The message names the foreign server alone; the reason is the detail.
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
            server := each.server;
            error := concat_ws(': ', SQLERRM, nullif(detail, ''));
            RETURN NEXT;
        END;
    END LOOP;
END
$$;

CREATE OR REPLACE VIEW hugepage_fleet.status AS
    SELECT * FROM hugepage_fleet.status()
    ORDER BY array_position(ARRAY[NULL, 'critical', 'warning', 'notice', 'ok'], verdict), server;

REVOKE ALL ON FUNCTION hugepage_fleet.add(text, text, int, text, text, text, text), hugepage_fleet.remove(text),
    hugepage_fleet.status() FROM PUBLIC;
REVOKE ALL ON hugepage_fleet.status FROM PUBLIC;
GRANT USAGE ON SCHEMA hugepage_fleet TO pg_monitor;
GRANT EXECUTE ON FUNCTION hugepage_fleet.status() TO pg_monitor;
GRANT SELECT ON hugepage_fleet.status TO pg_monitor;

COMMENT ON SCHEMA hugepage_fleet IS 'hugepage_status of many servers';
COMMENT ON FUNCTION hugepage_fleet.add(text, text, int, text, text, text, text) IS 'adds a server, or replaces it';
COMMENT ON FUNCTION hugepage_fleet.remove(text) IS 'removes a server';
COMMENT ON FUNCTION hugepage_fleet.status() IS 'one row for each server; error if a server could not be queried';
COMMENT ON VIEW hugepage_fleet.status IS 'one row for each server, the most severe first; error if a server could not be queried';

COMMIT;
