"""In huge pages now, but not after the next start: pools shrunk while the server runs, and crash restarts."""

import pytest

from harness.status import checked_status, create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers


def test_pool_shrunk_while_running(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    borrowed.resize(0)
    checked_status(server, verdict="warning", landed_in="hugetlb", restart_outlook="base", surplus_hugepages=needed)
    assert server.crash(), server.log()
    checked_status(server, verdict="notice", landed_in="base", restart_outlook="base", cause="pool_empty",
                   pages_missing=needed)


def test_crash_restart_keeps_its_pages(new_cluster, pool):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    assert server.crash(), server.log()
    checked_status(server, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")


def test_next_start_would_fail(new_cluster, pool):
    server = new_cluster(huge_pages=True)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    borrowed.resize(0)
    checked_status(server, verdict="critical", landed_in="hugetlb", restart_outlook="fails")
    assert not server.crash()
    assert "could not map anonymous shared memory" in server.log()


def test_surplus_pages_are_not_guaranteed(new_cluster, pool):
    """In surplus pages only: the kernel may be able to allocate them again, or not."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 0, needed)
    create_extension(server.start())
    checked_status(server, verdict="notice", landed_in="hugetlb", cause=None, restart_outlook="unknown",
                   surplus_hugepages=needed, recommended_nr_hugepages=needed)


def test_pool_grown_after_the_start(new_cluster, pool):
    """No pages are missing any more: only a restart is needed."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, 0)
    create_extension(server.start())
    borrowed.resize(needed)
    row = checked_status(server, landed_in="base", pages_missing=0, restart_outlook="hugetlb")
    assert "nr_hugepages" not in row["hint"] and "estart" in row["hint"]
    server.restart()
    checked_status(server, verdict="ok", landed_in="hugetlb")
