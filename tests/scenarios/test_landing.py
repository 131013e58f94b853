"""Which pages shared memory landed in, why, and the hint: every cause, on real pools."""

import re

import pytest

from harness.kernel import meminfo
from harness.smaps import main_mapping
from harness.status import assert_hint_is_exact, checked_status, command_of, create_extension
from harness.units import GB, MB

pytestmark = pytest.mark.own_servers


@pytest.mark.parametrize("page_size", [2 * MB, GB], ids=["2MB", "1GB"])
def test_landed(new_cluster, pool, page_size):
    server = new_cluster(huge_page_size=f"{page_size // MB}MB")
    needed = server.pages_needed(page_size)
    pool(page_size, needed)
    create_extension(server.start())
    checked_status(server, verdict="ok", landed_in="hugetlb", mapping="anon_hugepage", page_size=page_size, cause=None,
                   pages_needed=needed, pages_missing=0, restart_outlook="hugetlb", recommended_nr_hugepages=needed,
                   shared_buffers_in_huge_pages=True)


@pytest.mark.parametrize("page_size", [2 * MB, GB], ids=["2MB", "1GB"])
def test_pool_empty(new_cluster, pool, page_size):
    server = new_cluster(huge_page_size=f"{page_size // MB}MB")
    needed = server.pages_needed(page_size)
    borrowed = pool(page_size, 0)
    create_extension(server.start())
    row = checked_status(server, verdict="notice", landed_in="base", mapping="zero", cause="pool_empty", nr_hugepages=0,
                         pages_needed=needed, pages_missing=needed, restart_outlook="base",
                         recommended_nr_hugepages=needed)
    assert_hint_is_exact(server, row["hint"], borrowed)


@pytest.mark.parametrize("shared_buffers", ["16MB", "128MB", "333MB"])
def test_pool_too_small_by_one_page(new_cluster, pool, shared_buffers):
    server = new_cluster(shared_buffers=shared_buffers)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed - 1)
    create_extension(server.start())
    row = checked_status(server, verdict="notice", landed_in="base", cause="pool_too_small", pages_needed=needed,
                         pages_missing=1, restart_outlook="base", recommended_nr_hugepages=needed)
    assert_hint_is_exact(server, row["hint"], borrowed)


def test_pool_taken_by_another_cluster(new_cluster, pool):
    other, server = new_cluster(), new_cluster(shared_buffers="96MB")
    taken, needed = other.pages_needed(2 * MB), server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, taken + needed - 3)
    other.start()
    create_extension(server.start())
    row = checked_status(server, verdict="notice", landed_in="base", cause="pool_taken", pages_needed=needed,
                         pages_missing=3, recommended_nr_hugepages=taken + needed)
    assert command_of(row["hint"])[1] == taken + needed
    server.stop()
    borrowed.resize(taken + needed)
    server.start()
    checked_status(server, verdict="ok", landed_in="hugetlb")
    assert main_mapping(other.postmaster).landed_in == "hugetlb"


def test_warn_above_1_gb(new_cluster, pool):
    server = new_cluster(shared_buffers="1GB")
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 1)
    create_extension(server.start())
    checked_status(server, verdict="warning", landed_in="base", cause="pool_too_small", pages_missing=needed - 1)


def test_huge_pages_off(new_cluster, pool):
    server = new_cluster(huge_pages=False, shared_buffers="1GB")
    pool(2 * MB, 0)
    create_extension(server.start())
    checked_status(server, verdict="notice", landed_in="base", mapping="zero", cause="disabled", restart_outlook="base",
                   recommended_nr_hugepages=0)


def test_sysv_shared_memory(new_cluster, pool):
    server = new_cluster(shared_memory_type="sysv")
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    row = checked_status(server, verdict="notice", landed_in="base", cause="sysv_shared_memory", restart_outlook="base")
    assert row["mapping"].startswith("SYSV")
    assert "shared_memory_type" in row["hint"]


def test_page_size_the_cpu_lacks(new_cluster, pool):
    server = new_cluster(huge_page_size="16MB")
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    row = checked_status(server, verdict="notice", landed_in="base", cause="page_size_unsupported",
                         restart_outlook="base", pages_needed=None, pages_missing=None, nr_hugepages=None,
                         recommended_nr_hugepages=None)
    assert "huge_page_size" in row["hint"]


def test_pool_twice_as_large_as_needed(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 2 * needed)
    create_extension(server.start())
    # Others, which can't be seen from here, may need the rest.
    checked_status(server, verdict="notice", landed_in="hugetlb", cause=None, recommended_nr_hugepages=2 * needed)


@pytest.mark.whole_host
def test_more_than_the_host_can_hold(new_cluster, pool):
    """The recommendation stops at what the host can hold, as measured; the hint reduces shared memory first."""
    memory = meminfo()
    server = new_cluster(shared_buffers=f"{memory['MemTotal'] * 96 // 100 // MB}MB")
    pool(2 * MB, 0)
    create_extension(server.start())
    row = checked_status(server, cause="pool_empty", landed_in="base")
    most = (memory["MemAvailable"] + memory["Shmem"]) // (2 * MB) + row["nr_hugepages"]
    assert row["recommended_nr_hugepages"] <= most < row["pages_needed"]
    assert "exceeds the" in row["message"] and row["hint"].startswith("Reduce shared_buffers")
    assert int(re.search(r"nr_hugepages=(\d+)", row["hint"])[1]) <= most


@pytest.mark.whole_host
def test_beyond_the_reserve_with_a_caution(new_cluster, pool):
    server = new_cluster(shared_buffers=f"{meminfo()['MemTotal'] * 11 // 100 // MB}MB",
                         **{"pg_hugepages.reserve_percent": 90})
    pool(2 * MB, 0)
    create_extension(server.start())
    row = checked_status(server, cause="pool_empty", landed_in="base")
    assert row["recommended_nr_hugepages"] >= row["pages_needed"]
    assert "less than 90%. The number counts " in row["hint"]
