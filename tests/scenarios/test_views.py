"""hugepage_pools, hugepage_segments and its detail, compared with sysfs and smaps."""

from pathlib import Path

import pytest

from harness.cgroup import limits_are_hidden
from harness.cluster import rows
from harness.kernel import meminfo, pool_numbers
from harness.node_pools import nodes_of_pages
from harness.pool import pools
from harness.processes import as_its_user, children, shared_memory_of
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.smaps import BASE_PAGE, main_mapping, server_mappings
from harness.status import HIDDEN_LIMITS, create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers

NODES = Path("/sys/devices/system/node")


def test_pools_of_the_host(new_cluster, pool):
    pool(2 * MB, 7, 3)
    server = create_extension(new_cluster().start())
    for row in server.sql("SELECT * FROM hugepage_pools"):
        numbers = pool_numbers(row["page_size"])
        assert (row["nr_hugepages"], row["free_hugepages"], row["resv_hugepages"], row["surplus_hugepages"],
                row["nr_overcommit_hugepages"], row["available_hugepages"]) == (
                    numbers.nr, numbers.free, numbers.resv, numbers.surplus, numbers.overcommit, numbers.available)
        assert row["is_default"] == (row["page_size"] == meminfo()["Hugepagesize"])
    sizes = server.sql("SELECT page_size FROM hugepage_pools ORDER BY page_size")
    assert [row["page_size"] for row in sizes] == sorted(pool.page_size for pool in pools())


def test_pools_of_the_nodes(new_cluster, pool):
    pool(2 * MB, 7)
    server = create_extension(new_cluster().start())
    by_hand = {
        int(directory.parents[1].name.removeprefix("node")):
        tuple(int((directory / f"{name}_hugepages").read_text()) for name in ("nr", "free", "surplus"))
        for directory in NODES.glob("node*/hugepages/hugepages-2048kB")
    }
    of_view = server.sql("SELECT * FROM hugepage_nodes WHERE page_size = %s", 2 * MB)
    assert {row["node"]: (row["nr_hugepages"], row["free_hugepages"], row["surplus_hugepages"]) for row in of_view} == by_hand
    assert sum(row["nr_hugepages"] for row in of_view) == pool_numbers(2 * MB).nr


def test_nodes_count_each_page_once_and_touch_none(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed + 3)
    create_extension(server.start())
    fill_shared_buffers(server, 60 * MB)
    touching_session, observer = server.connect(), server.connect()
    touch_all(touching_session)
    # Load the library, and what a second call runs of it: on a tmpfs its code counts as shared memory.
    for _ in range(2):
        rows(observer, "SELECT * FROM hugepage_nodes")
    touched, free = shared_memory_of(observer.info.backend_pid), pool_numbers(2 * MB).free
    of_view = rows(observer, "SELECT * FROM hugepage_nodes")
    assert (shared_memory_of(observer.info.backend_pid), pool_numbers(2 * MB).free) == (touched, free)
    by_hand = nodes_of_pages([server.postmaster, *children(server.postmaster)], main_mapping(server.postmaster))
    assert sum(by_hand.values()) > 30
    assert {row["node"]: row["segment_pages"] for row in of_view if row["segment_pages"]} == by_hand
    assert sum(row["nr_hugepages"] for row in of_view) == needed + 3
    assert all(row["allowed"] and row["memory"] > 0 and row["page_size"] == 2 * MB for row in of_view)
    if len(of_view) == 1:
        [row], host = of_view, pool_numbers(2 * MB)
        assert (row["nr_hugepages"], row["free_hugepages"], row["resv_hugepages"], row["surplus_hugepages"]) == (
            host.nr, host.free, host.resv, host.surplus)


def test_nodes_in_base_pages(new_cluster, pool):
    server = new_cluster()
    pool(2 * MB, 5)
    create_extension(server.start())
    of_view = server.sql("SELECT * FROM hugepage_nodes")
    assert sum(row["nr_hugepages"] for row in of_view) == 5
    assert [row["segment_pages"] for row in of_view] == [0] * len(of_view)


@pytest.mark.parametrize("landed_in", ["hugetlb", "base"])
def test_segments(new_cluster, pool, landed_in):
    server = new_cluster(min_dynamic_shared_memory="4MB")
    pool(2 * MB, server.pages_needed(2 * MB) if landed_in == "hugetlb" else 0)
    create_extension(server.start())
    session = server.connect()
    of_view = rows(session, "SELECT * FROM hugepage_segments")
    detail = rows(session, "SELECT * FROM hugepage_segments(true)")
    backend = session.info.backend_pid
    kernel = main_mapping(backend)
    [main] = [row for row in of_view if row["segment"] == "main"]
    assert (main["mapping"], main["size"], main["page_size"], main["landed_in"]) == (
        kernel.short_name, kernel.length, kernel.page_size, landed_in)
    [interlock] = [row for row in of_view if row["segment"] == "interlock"]
    assert interlock["mapping"].startswith("SYSV")
    assert (interlock["size"], interlock["page_size"], interlock["landed_in"]) == (BASE_PAGE, BASE_PAGE, "base")
    assert sorted(row["size"] for row in of_view if row["segment"] != "dynamic") == (
        sorted(mapping.length for mapping in server_mappings(backend)))
    [main_detail] = [row for row in detail if row["segment"] == "main"]
    assert (main_detail["size"], main_detail["resident"], main_detail["thp_mapped"]) == (
        kernel.length, kernel.resident, kernel.pmd_mapped)
    assert main_detail["hugetlb"] == (kernel.resident if landed_in == "hugetlb" else 0)
    assert {row["segment"] for row in detail} == {row["segment"] for row in of_view}


def test_dynamic_segments(new_cluster):
    """Every backend maps at least the control segment of dynamic shared memory."""
    server = create_extension(new_cluster(dynamic_shared_memory_type="posix").start())
    session = server.connect()
    with as_its_user(session.info.backend_pid):
        maps = Path(f"/proc/{session.info.backend_pid}/maps").read_text().splitlines()
    dynamic = [line.split()[0].split("-") for line in maps if "/dev/shm/PostgreSQL." in line]
    by_hand = sorted(int(end, 16) - int(start, 16) for start, end in dynamic)
    assert by_hand
    of_view = rows(session, "SELECT * FROM hugepage_segments WHERE segment = 'dynamic'")
    assert sorted(row["size"] for row in of_view) == by_hand
    assert {(row["page_size"], row["landed_in"]) for row in of_view} == {(BASE_PAGE, "base")}


def test_notices(new_cluster):
    """What a call does not see of the host; the tests of `make installcheck`, which are for every host, leave them out."""
    server = create_extension(new_cluster().start())
    views = [row["relname"] for row in server.sql(r"SELECT relname FROM pg_class WHERE relname LIKE 'hugepage\_%' AND relkind = 'v'")]
    hidden = {f"NOTICE:  pg_hugepages: {HIDDEN_LIMITS}\n"} if limits_are_hidden() else set()
    notices_of = {}
    for call in (*views, "hugepage_preflight()"):
        session = server.connect()
        rows(session, f"SELECT * FROM {call}")
        notices_of[call] = set(session.notices)
    # Without the worker nobody records.
    [unrecorded] = notices_of.pop("hugepage_history") - hidden
    assert "nothing is recorded" in unrecorded
    assert all(notices <= hidden for notices in notices_of.values()) and notices_of["hugepage_pools"] == hidden, notices_of
