"""Transparent huge pages behind the main segment: seen by what is mapped, never by a setting."""

import pytest

from harness.cluster import Cluster, rows
from harness.poll import until
from harness.preloaded import WATCHED
from harness.smaps import main_mapping
from harness.status import checked_status, create_extension
from harness.units import MB

FILL = "CREATE TABLE {0} AS SELECT repeat('x', 500) FROM generate_series(1, 60000)"


@pytest.fixture
def no_pool(pool):
    return pool(2 * MB, 0)


def seen_by_the_worker(server: Cluster, landed_in: str) -> None:
    """Wait for its sample: no session walks page tables."""
    until(f"the worker to see {landed_in}", lambda: server.sql("SELECT landed_in FROM hugepage_status")[0]["landed_in"] == landed_in)


def test_whole(new_cluster, no_pool, thp):
    thp("always")
    server = create_extension(new_cluster(**WATCHED).start())
    server.sql(FILL.format("filled"))
    seen_by_the_worker(server, "thp")
    checked_status(server, verdict="notice", landed_in="thp", mapping="zero", shared_buffers_in_huge_pages=False,
                   cause="pool_empty")


def test_partial(new_cluster, no_pool, thp):
    switch = thp("always")
    server = create_extension(new_cluster(**WATCHED).start())
    server.sql(FILL.format("in_huge_pages"))
    switch.select("never")
    server.sql(FILL.format("in_base_pages"))
    session = server.connect()
    for table in ("in_huge_pages", "in_base_pages"):
        rows(session, f"SELECT count(*) FROM {table}")
    seen_by_the_worker(server, "partial thp")
    [row] = rows(session, "SELECT verdict, shared_buffers_in_huge_pages, cause FROM hugepage_status")
    assert row == {"verdict": "notice", "shared_buffers_in_huge_pages": False, "cause": "pool_empty"}


def test_of_another_process_alone(new_cluster, no_pool, thp):
    """Shared memory in THP elsewhere on the host does not make ours huge."""
    switch = thp("always")
    other = new_cluster().start()
    assert main_mapping(other.postmaster).landed_in == "thp"
    switch.select("never")
    server = create_extension(new_cluster(**WATCHED).start())
    seen_by_the_worker(server, "base")
    checked_status(server, landed_in="base", mapping="zero")
