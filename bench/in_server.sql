-- What the bench needs in its throwaway database; psql's variable `module` is the library made of in_server.c.
CREATE EXTENSION pg_hugepages;
SELECT set_config('bench.module', :'module', false) \g /dev/null

-- Functions and views with the very columns of hugepage_status that return one row of NULLs.
DO $do$
DECLARE
    columns text;
    name text;
BEGIN
    SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum)
        INTO columns FROM pg_attribute WHERE attrelid = 'hugepage_status'::regclass AND attnum > 0;
    FOREACH name IN ARRAY '{one_row,at_once}'::text[] LOOP
        EXECUTE format('CREATE FUNCTION %I() RETURNS TABLE (%s) LANGUAGE c VOLATILE ROWS 1 AS %L, %L',
                       name, columns, current_setting('bench.module'), name);
        EXECUTE format('CREATE VIEW %1$I AS SELECT * FROM %1$I()', name);
    END LOOP;
END
$do$;

CREATE FUNCTION touch_shared_buffers() RETURNS void LANGUAGE c AS :'module', 'touch_shared_buffers';

-- Makes the function pg_temp.NAME(batches, batch): for each batch the microseconds that one execution took. The
-- statement keeps its plan, as a prepared statement does.
CREATE FUNCTION make_timer(name text, statement text) RETURNS void LANGUAGE plpgsql AS $make$
BEGIN
    EXECUTE format($timer$
        CREATE OR REPLACE FUNCTION pg_temp.%I(batches int, batch int) RETURNS float8[] LANGUAGE plpgsql AS $body$
        DECLARE
            began timestamptz;
            took float8[] := '{}';
        BEGIN
            FOR i IN 1..batches LOOP
                began := clock_timestamp();
                FOR j IN 1..batch LOOP
                    %s;
                END LOOP;
                took := took || (extract(epoch FROM clock_timestamp() - began)::float8 * 1e6 / batch);
            END LOOP;
            RETURN took;
        END
        $body$
        $timer$, name, statement);
END
$make$;
