"""The queries that exporters run, each once: they yield the metrics that `hugepage-sidecar metrics` writes, under its names.

An exporter puts the name of a query before the name of a column. So query `hugepage_pool` with column
`free_hugepages` is the metric hugepage_pool_free_hugepages. The tests compare names, HELP, labels and values with those
of the sidecar's metrics.
"""

from dataclasses import dataclass

LEVEL = "CASE {0} WHEN 'ok' THEN 0 WHEN 'notice' THEN 1 WHEN 'warning' THEN 2 WHEN 'critical' THEN 3 END AS {1}"
INSTANCE = "'postgresql' AS kind, current_setting('data_directory') AS name"
LANDINGS = ("hugetlb", "thp", "partial thp", "mixed", "base", "unknown")
OUTLOOKS = ("hugetlb", "mixed", "base", "fails", "unknown")
FINDINGS = ("cgroup_limit", "restart_fails", "regressed", "base_pages", "restart_loses", "page_tables", "pool_wasted",
            "transparent_huge_pages", "landing_unknown", "outlook_unknown", "crash_loses", "node_limit",
            "shared_limit", "host_memory_unknown", "boot_loses", "limit_hit")
CAUSES = ("disabled", "memory_target", "sysv_shared_memory", "page_size_unsupported", "pool_empty", "pool_too_small",
          "pool_taken", "cgroup_limit", "memlock_limit", "shm_group", "shm_limit", "node_limit", "unknown")


@dataclass(frozen=True)
class Query:
    """One query; labels are columns of text, values are columns of numbers with their HELP, NULL being no sample.

    A label of a set of states has the name of its metric, as OpenMetrics has it.
    """

    name: str
    sql: str
    labels: tuple[str, ...]
    values: dict[str, str]
    each_backend: bool = False
    """Whether it costs more with more backends."""

    @property
    def gauges(self) -> list[str]:
        """The values that are no counters."""
        return [name for name in self.values if not name.endswith("_total")]


def each_of(texts: tuple[str, ...]) -> str:
    """The texts that a column can have, as rows of a column `it`."""
    return f"unnest(ARRAY[{', '.join(repr(text) for text in texts)}]) AS it"


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
""", ("kind", "name"), {
        "verdict": "Most severe finding: 0 ok, 1 notice, 2 warning, 3 critical.",
        "shared_buffers_bytes": "Size of the buffer pool.",
        "shared_memory_bytes": "Size of the main shared memory segment.",
        "page_size_bytes": "Page size of the main segment.",
        "pages_needed": "Huge pages that the running segment has or would need.",
        "pages_missing": "Needed pages that are unavailable now; 0 in huge pages.",
        "recommended_nr_hugepages": "Recommended pool for this instance and all others that are seen, in pages of the size that it uses.",
        "allocations_total": "Allocations of shared memory by this postmaster; no sample unless the library is preloaded.",
    }),
    Query("hugepage_instance", f"""\
SELECT {INSTANCE},
       huge_pages,
       coalesce(huge_page_size::text, '') AS huge_page_size,
       1 AS info
FROM hugepage_status
""", ("kind", "name", "huge_pages", "huge_page_size"), {
        "info": "The settings huge_pages and huge_page_size in effect, always 1.",
    }),
    Query("hugepage_build", f"""\
SELECT {INSTANCE},
       hugepage_library_version() AS version,
       current_setting('server_version') AS postgresql,
       1 AS info
""", ("kind", "name", "version", "postgresql"), {
        "info": "The version that is installed, always 1.",
    }),
    Query("hugepage_last", f"""\
SELECT {INSTANCE},
       floor(extract(epoch FROM max(recorded_at)))::int8 AS regression_timestamp_seconds
FROM hugepage_history
WHERE regression
HAVING count(*) > 0
""", ("kind", "name"), {
        "regression_timestamp_seconds":
            "Time of the last loss of huge pages in the history, in seconds since 1970; no sample without one.",
    }),
    Query("hugepage_finding", f"""\
SELECT {INSTANCE},
       it AS finding,
       {LEVEL.format("coalesce(severity, 'ok')", 'severity')}
FROM {each_of(FINDINGS)}
LEFT JOIN hugepage_findings ON finding = it
""", ("kind", "name", "finding"), {
        "severity": "Severity of each possible finding: 0 not found, 1 notice, 2 warning, 3 critical.",
    }),
    Query("hugepage_landed", f"""\
SELECT {INSTANCE},
       it AS hugepage_landed_in,
       (landed_in = it)::int AS "in"
FROM hugepage_status,
     {each_of(LANDINGS)}
""", ("kind", "name", "hugepage_landed_in"), {
        "in": "Pages that shared memory is in: 1 for the present state, else 0.",
    }),
    Query("hugepage_fallback", f"""\
SELECT {INSTANCE},
       it AS hugepage_fallback_cause,
       (cause IS NOT DISTINCT FROM it)::int AS cause
FROM hugepage_status,
     {each_of(CAUSES)}
""", ("kind", "name", "hugepage_fallback_cause"), {
        "cause": "Why shared memory is not in huge pages: 1 for the cause; all 0 in huge pages.",
    }),
    Query("hugepage_restart", f"""\
SELECT {INSTANCE},
       it AS hugepage_restart_outlook,
       (restart_outlook = it)::int AS outlook
FROM hugepage_status,
     {each_of(OUTLOOKS)}
""", ("kind", "name", "hugepage_restart_outlook"), {
        "outlook": "Pages that the next start with the configuration on disk would get: 1 for the expected state, else 0.",
    }),
    Query("hugepage_crash", f"""\
SELECT {INSTANCE},
       it AS hugepage_crash_outlook,
       (crash_outlook = it)::int AS outlook
FROM hugepage_status,
     {each_of(OUTLOOKS)}
""", ("kind", "name", "hugepage_crash_outlook"), {
        "outlook": "Pages that a restart after a crash of one process would get, of PostgreSQL alone: 1 for the expected "
                   "state, else 0.",
    }),
    Query("hugepage_cgroup", f"""\
SELECT {INSTANCE},
       cgroup_limit AS limit_bytes,
       cgroup_usage AS usage_bytes
FROM hugepage_pools p
JOIN hugepage_status s ON p.page_size = s.huge_page_size
WHERE cgroup_limit IS NOT NULL
""", ("kind", "name"), {
        "limit_bytes": "The hugetlb cgroup limit of the instance with the least room; no sample without a limit.",
        "usage_bytes": "Usage that counts against the hugetlb cgroup limit.",
    }),
    Query("hugepage_page_tables", f"""\
SELECT {INSTANCE},
       processes,
       page_tables_total AS bytes,
       page_tables_max AS max_bytes,
       saving AS saving_bytes,
       estimated_at_max_connections AS at_max_connections_bytes
FROM hugepage_page_tables
""", ("kind", "name"), {
        "processes": "Processes of the instance.",
        "bytes": "Page tables of all processes of the instance.",
        "max_bytes": "Page tables of the process with the most.",
        "saving_bytes": "Lower bound of what huge pages would free of the instance's page tables.",
        "at_max_connections_bytes":
            "Page tables of max_connections backends that have each touched all of shared memory.",
    }, each_backend=True),
    Query("hugepage_pool", """\
SELECT page_size::text AS page_size,
       nr_hugepages,
       free_hugepages,
       resv_hugepages,
       surplus_hugepages,
       nr_overcommit_hugepages,
       available_hugepages
FROM hugepage_pools
""", ("page_size",), {
        "nr_hugepages": "Pages in the pool of the host, surplus included.",
        "free_hugepages": "Pages of the pool that are not yet touched; they may be reserved.",
        "resv_hugepages": "Of the free pages, those reserved by a mapping.",
        "surplus_hugepages": "Pages above the configured pool size; they are freed when their user stops.",
        "nr_overcommit_hugepages": "Maximum of surplus pages that the kernel may add.",
        "available_hugepages": "Pages that are free and not reserved.",
    }),
    Query("hugepage_host", """\
SELECT max(setting::bigint) FILTER (WHERE name = 'PageTables') AS page_tables_bytes,
       max(setting::bigint) FILTER (WHERE name = 'MemTotal') AS memory_bytes
FROM hugepage_host
WHERE name IN ('PageTables', 'MemTotal')
""", (), {
        "page_tables_bytes": "Page tables of the whole host.",
        "memory_bytes": "Memory of the host, huge pages included.",
    }),
]
