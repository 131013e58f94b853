-- What the bench needs in its throwaway database; psql's variable `module` is the library made of in_server.c.
CREATE EXTENSION pg_hugepages;
CREATE FUNCTION touch_shared_buffers() RETURNS void LANGUAGE c AS :'module', 'touch_shared_buffers';
CREATE FUNCTION read_status_files() RETURNS bigint LANGUAGE c AS :'module', 'read_status_files';

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
