"""Transparent huge pages behind the main segment: seen by what is mapped, never by a setting."""

import pytest

from harness.cluster import rows
from harness.smaps import main_mapping
from harness.status import checked_status, create_extension
from harness.units import MB

FILL = "CREATE TABLE {0} AS SELECT repeat('x', 500) FROM generate_series(1, 60000)"


@pytest.fixture
def no_pool(pool):
    return pool(2 * MB, 0)


def test_whole(new_cluster, no_pool, thp):
    thp("always")
    server = create_extension(new_cluster().start())
    server.sql(FILL.format("filled"))
    checked_status(server, verdict="notice", landed_in="thp", mapping="zero", shared_buffers_in_huge_pages=False,
                   cause="pool_empty")


def test_partial(new_cluster, no_pool, thp):
    switch = thp("always")
    server = create_extension(new_cluster().start())
    server.sql(FILL.format("in_huge_pages"))
    switch.select("never")
    server.sql(FILL.format("in_base_pages"))
    session = server.connect()
    for table in ("in_huge_pages", "in_base_pages"):
        rows(session, f"SELECT count(*) FROM {table}")
    checked_status(server, session, verdict="notice", landed_in="partial thp", shared_buffers_in_huge_pages=False,
                   cause="pool_empty")


def test_of_another_process_alone(new_cluster, no_pool, thp):
    """Shared memory in THP elsewhere on the host does not make ours huge."""
    switch = thp("always")
    other = new_cluster().start()
    assert main_mapping(other.postmaster).landed_in == "thp"
    switch.select("never")
    checked_status(create_extension(new_cluster().start()), landed_in="base", mapping="zero")
