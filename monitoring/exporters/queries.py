"""The queries that exporters run, each once: they yield the metrics that `hugepage-sidecar metrics` writes, under its names.

An exporter puts the name of a query before the name of a column. So query `hugepage_pool` with column
`free_hugepages` is the metric hugepage_pool_free_hugepages. The tests compare names, HELP, labels and values with those
of the sidecar's metrics.
"""

from dataclasses import dataclass

from columns import sections, words

LEVEL = "CASE {0} WHEN 'ok' THEN 0 WHEN 'notice' THEN 1 WHEN 'warning' THEN 2 WHEN 'critical' THEN 3 END AS {1}"
INSTANCE = "'postgresql' AS kind, current_setting('data_directory') AS name"
METRICS = {metric.name: metric.help for section, metrics in sections().items() if section.startswith("metrics ") for metric in metrics}
"""The HELP of each metric."""


@dataclass(frozen=True)
class Query:
    """One query; labels are columns of text, the others numbers, NULL being no sample.

    A label of a set of states has the name of its metric, as OpenMetrics has it.
    """

    name: str
    sql: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    each_backend: bool = False
    """Whether it costs more with more backends."""

    @property
    def values(self) -> dict[str, str]:
        """The columns of numbers, with the HELP that columns.txt declares."""
        return {column: METRICS[f"{self.name}_{column}"] for column in self.columns}

    @property
    def gauges(self) -> list[str]:
        """The values that are no counters."""
        return [name for name in self.columns if not name.endswith("_total")]


def each_of(texts: tuple[str, ...]) -> str:
    """The texts that a column can have, as rows of a column `it`."""
    return f"unnest(ARRAY[{', '.join(repr(text) for text in texts)}]) AS it"


STATES = {"landed_in": "landed_in", "fallback_cause": "cause", "restart_outlook": "restart_outlook", "crash_outlook": "crash_outlook"}
"""The metrics that have a series for each word of a column of hugepage_status."""


def of_states(metric: str, column: str) -> Query:
    query, value = f"hugepage_{metric}".rsplit("_", 1)
    return Query(query, f"""\
SELECT {INSTANCE},
       it AS hugepage_{metric},
       ({column} IS NOT DISTINCT FROM it)::int AS "{value}"
FROM hugepage_status,
     {each_of(words(column))}
""", ("kind", "name", f"hugepage_{metric}"), (value,))


QUERIES = [
    Query("hugepage", f"""\
SELECT {INSTANCE},
       {LEVEL.format('verdict', 'verdict')},
       shared_buffers AS shared_buffers_bytes,
       shared_memory AS shared_memory_bytes,
       page_size AS page_size_bytes,
       pages_needed,
       pages_missing,
       recommended_nr_hugepages,
       generation AS allocations_total
FROM hugepage_status
""", ("kind", "name"), (
        "verdict", "shared_buffers_bytes", "shared_memory_bytes", "page_size_bytes", "pages_needed", "pages_missing",
        "recommended_nr_hugepages", "allocations_total")),
    Query("hugepage_instance", f"""\
SELECT {INSTANCE},
       huge_pages,
       coalesce(huge_page_size::text, '') AS huge_page_size,
       1 AS info
FROM hugepage_status
""", ("kind", "name", "huge_pages", "huge_page_size"), ("info",)),
    Query("hugepage_build", """\
SELECT hugepage_library_version() AS version,
       1 AS info
""", ("version",), ("info",)),
    Query("hugepage_last", f"""\
SELECT {INSTANCE},
       floor(extract(epoch FROM max(recorded_at)))::int8 AS regression_timestamp_seconds
FROM hugepage_history
WHERE regression
HAVING count(*) > 0
""", ("kind", "name"), ("regression_timestamp_seconds",)),
    Query("hugepage_finding", f"""\
SELECT {INSTANCE},
       it AS finding,
       {LEVEL.format("coalesce(severity, 'ok')", 'severity')}
FROM {each_of(words("finding"))}
LEFT JOIN hugepage_findings ON finding = it
""", ("kind", "name", "finding"), ("severity",)),
    *(of_states(name, column) for name, column in STATES.items()),
    Query("hugepage_cgroup", f"""\
SELECT {INSTANCE},
       cgroup_limit AS limit_bytes,
       cgroup_usage AS usage_bytes
FROM hugepage_pools p
JOIN hugepage_status s ON p.page_size = s.huge_page_size
WHERE cgroup_limit IS NOT NULL
""", ("kind", "name"), ("limit_bytes", "usage_bytes")),
    Query("hugepage_page_tables", f"""\
SELECT {INSTANCE},
       processes,
       page_tables_total AS bytes,
       page_tables_max AS max_bytes,
       saving AS saving_bytes,
       estimated_at_max_connections AS at_max_connections_bytes
FROM hugepage_page_tables
""", ("kind", "name"), ("processes", "bytes", "max_bytes", "saving_bytes", "at_max_connections_bytes"), each_backend=True),
    Query("hugepage_pool", """\
SELECT page_size::text AS page_size,
       nr_hugepages,
       free_hugepages,
       resv_hugepages,
       surplus_hugepages,
       nr_overcommit_hugepages,
       available_hugepages
FROM hugepage_pools
""", ("page_size",), ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages", "available_hugepages")),
    Query("hugepage_host", """\
SELECT max(setting::bigint) FILTER (WHERE name = 'PageTables') AS page_tables_bytes,
       max(setting::bigint) FILTER (WHERE name = 'MemTotal') AS memory_bytes
FROM hugepage_host
WHERE name IN ('PageTables', 'MemTotal')
""", (), ("page_tables_bytes", "memory_bytes")),
]
