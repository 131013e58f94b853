-- In a container a call says in a notice what it does not see of the host.
SET client_min_messages = warning;
-- What holds on every host; tests/scenarios have what a host in a given state must show.
SELECT count(*) AS rows,
       bool_and(verdict IN ('ok', 'notice', 'warning', 'critical')) AS verdict,
       bool_and(message ~ '^[A-Z].*\.$') AS message_is_a_sentence,
       bool_and(hint IS NULL OR hint ~ '^[A-Z].*\.$') AS hint_is_a_sentence,
       bool_and(landed_in IN ('hugetlb', 'thp', 'partial thp', 'base')) AS landed_in,
       bool_and(shared_buffers_in_huge_pages = (landed_in = 'hugetlb')) AS answer,
       bool_and((cause IS NULL) = (landed_in = 'hugetlb')) AS cause,
       bool_and(shared_buffers = pg_size_bytes(current_setting('shared_buffers'))) AS shared_buffers,
       bool_and(shared_memory > shared_buffers) AS shared_memory,
       bool_and(huge_pages = current_setting('huge_pages')) AS huge_pages,
       bool_and(pages_needed = ceil(shared_memory::numeric / huge_page_size)) AS pages_needed,
       bool_and(pages_missing BETWEEN 0 AND pages_needed) AS pages_missing,
       bool_and(free_hugepages <= nr_hugepages) AS free,
       bool_and(available_hugepages = free_hugepages - resv_hugepages) AS available,
       bool_and(page_tables_host > 0) AS page_tables,
       bool_and(restart_outlook IN ('hugetlb', 'base', 'fails', 'unknown')) AS outlook
FROM hugepage_status;

SELECT count(*) > 0 AS sizes,
       count(*) FILTER (WHERE is_default) AS default_size,
       bool_and(nr_hugepages >= free_hugepages) AS free
FROM hugepage_pools;

-- The pool of the status row is a row of the pools.
SELECT count(*) FROM hugepage_status s JOIN hugepage_pools p ON p.page_size = s.huge_page_size;

-- The nodes' pools are that of hugepage_pools; no page of shared memory is counted twice.
SELECT sum(n.nr_hugepages) = max(p.nr_hugepages) IS NOT FALSE AS pool,
       sum(n.segment_pages) <= max(s.pages_needed) IS NOT FALSE AS segment
FROM hugepage_nodes n JOIN hugepage_pools p USING (page_size), hugepage_status s;

SELECT segment, count(*) FROM hugepage_segments WHERE segment IN ('main', 'interlock') GROUP BY segment ORDER BY segment;

SELECT s.mapping = g.mapping AS mapping, s.shared_memory = g.size AS size, s.page_size = g.page_size AS page_size,
       s.landed_in = g.landed_in AS landed_in
FROM hugepage_status s, hugepage_segments g WHERE g.segment = 'main';

SELECT d.size >= d.resident AS resident, d.resident > 0 AS touched, d.thp_mapped >= 0 AS thp, d.hugetlb >= 0 AS hugetlb,
       d.reserved >= d.size AS reserved
FROM hugepage_segments(true) d WHERE segment = 'main';

-- Every process once, each session of pg_stat_activity among them.
SELECT count(*) = count(DISTINCT pid) AS once,
       count(*) FILTER (WHERE backend_type = 'postmaster') AS postmasters,
       bool_and(page_tables > 0) AS page_tables,
       bool_and(rss_shmem >= 0 AND rss_anon >= 0 AND rss_file >= 0 AND swap >= 0) AS memory
FROM hugepage_backends;

SELECT b.datname = current_database() AS datname, b.usename = current_user AS usename, b.state,
       b.backend_type, b.backend_start = a.backend_start AS backend_start, b.application_name = a.application_name AS application_name
FROM hugepage_backends b JOIN pg_stat_activity a USING (pid) WHERE pid = pg_backend_pid();

SELECT count(*) FROM pg_stat_activity a LEFT JOIN hugepage_backends b USING (pid)
WHERE b.pid IS NULL AND a.backend_type IN ('checkpointer', 'background writer', 'walwriter');

SELECT processes > 1 AS processes,
       page_tables_max <= page_tables_total AS max,
       page_tables_host > 0 AND memory_total > page_tables_host AS host,
       share_of_memory BETWEEN 0 AND 1 AS share,
       estimated_on_huge_pages + saving = page_tables_total AS saving,
       estimated_at_max_connections > 0 AS at_max_connections
FROM hugepage_page_tables;

SELECT bool_and(source LIKE '/%') AS source, bool_and(setting <> '') AS setting,
       count(*) FILTER (WHERE name IN ('MemTotal', 'PageTables', 'vm.nr_hugepages', 'vm.swappiness')) AS well_known
FROM hugepage_host;

-- The next start gets what the server's own program reports, and more memory never needs fewer pages.
SELECT shared_memory > 0 AS size, pages_needed > 0 AS pages,
       pages_missing = greatest(pages_needed - pages_guaranteed, 0) AS missing,
       will_start OR detail IS NOT NULL AS explained
FROM hugepage_preflight();
SELECT bool_and(w.shared_memory >= p.shared_memory) AS grows
FROM hugepage_preflight() p,
     LATERAL hugepage_preflight('16GB', 1000) w;
SELECT * FROM hugepage_preflight(shared_buffers => '1');
SELECT * FROM hugepage_preflight(max_connections => 0);
SELECT bool_and(priority > 0 AND severity IN ('notice', 'warning', 'critical')
                AND area IN ('postgresql', 'kernel', 'boot', 'limits', 'cgroup')
                AND takes_effect IN ('now', 'server restart', 'reboot')
                AND reason LIKE '%.') IS NOT FALSE AS recommendations
FROM hugepage_recommendations;

-- Recorded while the library is preloaded; otherwise there may be no rows.
SELECT bool_and(event IN ('start', 'crash restart', 'change', 'collapse', 'split')) IS NOT FALSE AS event,
       bool_and(generation >= 1) IS NOT FALSE AS generation,
       bool_and(landed_in IN ('hugetlb', 'thp', 'partial thp', 'base', 'unknown')) IS NOT FALSE AS landed_in,
       bool_and(restart_outlook IN ('hugetlb', 'base', 'fails', 'unknown')) IS NOT FALSE AS outlook,
       bool_and(free_hugepages <= nr_hugepages) IS NOT FALSE AS free,
       bool_and(NOT regression OR detail <> '') IS NOT FALSE AS detail,
       bool_and(regression = (was_recorded_at IS NOT NULL AND was_landed_in <> '' AND was_restart_outlook <> ''))
           IS NOT FALSE AS before
FROM hugepage_history;

-- The verdict is the most severe finding that is no kernel advisory.
SELECT coalesce((array_agg(f.severity))[1], 'ok') = min(s.verdict) AS verdict,
       count(f.finding) = count(DISTINCT f.finding) AS once,
       bool_and(f.severity IN ('notice', 'warning', 'critical') AND f.message ~ '^[A-Z].*\.$'
                AND coalesce(f.hint, 'A.') ~ '^[A-Z].*\.$') IS NOT FALSE AS sentences,
       bool_and(f.severity = 'notice' OR f.hint IS NOT NULL) IS NOT FALSE AS hints
FROM hugepage_status s LEFT JOIN hugepage_findings f ON f.finding NOT LIKE 'kernel\_%';
SELECT bool_and(severity = 'notice' OR severity IS NULL) IS NOT FALSE AS severity,
       bool_and(message <> '' AND hint IS NULL) IS NOT FALSE AS message
FROM hugepage_findings WHERE finding LIKE 'kernel\_%';

-- One row, returned at once: for each row of another table, and read backwards.
SELECT (hugepage_status()).pages_needed > 0 AS needed, (hugepage_page_tables()).processes > 1 AS processes
FROM generate_series(1, 2);

BEGIN;
DECLARE backwards SCROLL CURSOR FOR
    SELECT number, s.pages_needed > 0 AS needed FROM generate_series(1, 2) number, LATERAL hugepage_status() s;
MOVE ALL FROM backwards;
FETCH BACKWARD ALL FROM backwards;
COMMIT;
