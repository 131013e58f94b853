"""Fill shared buffers and read them in a backend, which makes its page tables grow."""

from typing import Any

from harness.cluster import Cluster, rows

TABLE = "touched"


def fill_shared_buffers(cluster: Cluster, size: int) -> None:
    """Create a table of `size` bytes, one row in each block, and load all of it into shared buffers."""
    cluster.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
    cluster.sql(f"CREATE UNLOGGED TABLE {TABLE} (filler text)")
    cluster.sql(f"ALTER TABLE {TABLE} ALTER filler SET STORAGE PLAIN")
    cluster.sql(f"INSERT INTO {TABLE} SELECT repeat('x', 7000) FROM generate_series(1, %s)", size // 8192)
    cluster.sql(f"SELECT pg_prewarm('{TABLE}')")


def touch_all(session: Any) -> None:
    """Read every block of the table in this backend, without parallel workers."""
    rows(session, "SET max_parallel_workers_per_gather = 0")
    rows(session, f"SELECT count(*) FROM {TABLE}")
