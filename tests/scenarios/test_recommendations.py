"""hugepage_recommendations: doing what a row says brings what it promises, and the numbers of other tools would not."""

import math
import re

import pytest

from harness.cluster import Cluster, rows
from harness.kernel import meminfo, pool_numbers
from harness.preloaded import WATCHED, await_answer
from harness.processes import run
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import GB, MB, pages

# With the pools, of which they compare the numbers.
pytestmark = [pytest.mark.own_servers, pytest.mark.quiet_pools]


def recommended(server: Cluster, setting: str, area: str | None = None) -> dict | None:
    """The row on a setting, if there is one."""
    found = [row for row in server.sql("SELECT * FROM hugepage_recommendations")
             if row["setting"] == setting and area in (None, row["area"])]
    assert len(found) <= 1, found
    return found[0] if found else None


def do(server: Cluster, row: dict) -> None:
    """Run the command of a row as it stands."""
    if row["area"] == "postgresql":
        server.sql(row["command"])
    else:
        run("sh", "-c", row["command"])


def test_rows_are_complete_and_in_order(new_cluster, pool):
    server = create_extension(new_cluster(huge_pages="try").start())
    pool(2 * MB, 0)
    found = server.sql("SELECT * FROM hugepage_recommendations")
    assert [row["priority"] for row in found] == list(range(1, len(found) + 1))
    gravity = {"critical": 0, "warning": 1, "notice": 2}
    assert [gravity[row["severity"]] for row in found] == sorted(gravity[row["severity"]] for row in found)
    for row in found:
        assert row["reason"].endswith(".") and row["area"] in ("postgresql", "kernel", "boot", "limits", "cgroup")
        assert row["takes_effect"] in ("now", "server restart", "reboot")
        assert (row["command"] is None) == (row["recommended"] is None)


@pytest.mark.parametrize("shared_buffers", ["32MB", "200MB", "1GB"])
def test_pool_to_the_page(new_cluster, pool, shared_buffers):
    server = new_cluster(shared_buffers=shared_buffers)
    borrowed = pool(2 * MB, 0)
    create_extension(server.start())
    row = recommended(server, "vm.nr_hugepages", "kernel")
    assert (row["severity"], row["takes_effect"]) == ("warning" if shared_buffers == "1GB" else "notice", "server restart")
    do(server, row)
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"
    assert recommended(server, "vm.nr_hugepages", "kernel") is None
    borrowed.resize(int(row["recommended"]) - 1)
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "base"


def test_pool_lowered_under_the_server(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    borrowed.resize(0)
    row = recommended(server, "vm.nr_hugepages", "kernel")
    assert row["severity"] == "warning" and "guaranteed" in row["reason"] and row["takes_effect"] == "now"
    do(server, row)
    assert server.sql("SELECT restart_outlook o FROM hugepage_status") == [{"o": "hugetlb"}]


def test_pages_to_give_back(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed + 40)
    create_extension(server.start())
    # Another server, in base pages, may need them.
    assert recommended(server, "vm.nr_hugepages", "kernel") is None


def test_others_are_counted(new_cluster, pool):
    other, server = new_cluster(shared_buffers="64MB"), new_cluster()
    pool(2 * MB, other.pages_needed(2 * MB))
    other.start()
    create_extension(server.start())
    do(server, recommended(server, "vm.nr_hugepages", "kernel"))
    server.restart()
    other.restart()
    for cluster in (server, other):
        assert main_mapping(cluster.postmaster).landed_in == "hugetlb"


@pytest.mark.any_major
def test_what_does_not_fit_is_never_recommended(new_cluster, pool):
    """By how much it does not, and what shared memory may take so that the reserve is left to base pages."""
    reserve, memory = 90, meminfo()
    room = memory["MemTotal"] * (100 - reserve) // 100
    server = new_cluster(shared_buffers=f"{memory['MemTotal'] * 96 // 100 // MB}MB",
                         **{"pg_hugepages.reserve_percent": reserve})
    borrowed = pool(2 * MB, 0)
    create_extension(server.start())
    assert recommended(server, "vm.nr_hugepages", "kernel") is None
    row = recommended(server, "shared_buffers")
    assert "that this host can hold" in row["reason"]
    assert (row["recommended"], row["command"]) == (None, None)
    most = room // (2 * MB)
    hint = server.sql("SELECT hint FROM hugepage_status")[0]["hint"]
    number, unit = re.search("shared memory takes at most ([0-9.]+) (MB|GB)", hint).groups()
    assert float(number) == pytest.approx(most * 2 * MB / {"MB": MB, "GB": GB}[unit], abs=0.1)

    def needed(megabytes: int) -> int:
        return pages(server.sql("SELECT shared_memory s FROM hugepage_preflight(%s)", f"{megabytes}MB")[0]["s"], 2 * MB)

    fits = next(size for size in range(2 * most, 0, -max(1, most // 50)) if needed(size) <= most)
    borrowed.resize(pool_numbers(2 * MB).held + most)
    server.conf(shared_buffers=f"{fits}MB")
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"


def test_settings_of_the_server(new_cluster, pool):
    pool(2 * MB, 200)
    server = create_extension(new_cluster(shared_memory_type="sysv").start())
    do(server, recommended(server, "shared_memory_type"))
    server.conf(shared_memory_type=None)
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"
    server.conf(huge_page_size="16MB")
    server.restart()
    hint = server.sql("SELECT hint FROM hugepage_status")[0]["hint"]
    assert hint.startswith("Set huge_page_size = 0"), hint
    server.conf(huge_page_size=None)
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"
    server.conf(huge_pages=False, shared_buffers="500MB", max_connections=500)
    server.restart()
    do(server, recommended(server, "huge_pages"))


@pytest.mark.any_major
def test_cgroup_limits(new_cluster, pool, cgroup):
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed + 20)
    group = cgroup()
    create_extension(server.start(within=group))
    # The kernel takes no limit below what is reserved, so the server outgrows this one.
    group.limit(2 * MB, max=(needed - 1) * 2 * MB, rsvd_max=needed * 2 * MB)
    server.conf(shared_buffers="140MB")
    await_answer(server)
    [fault] = [row for row in server.sql("SELECT * FROM hugepage_recommendations WHERE area = 'cgroup'")
               if row["setting"].endswith("2MB.max")]
    [reserve] = [row for row in server.sql("SELECT * FROM hugepage_recommendations WHERE area = 'cgroup'")
                 if row["setting"].endswith("rsvd.max")]
    # Both are steps of what the fault limit leads to.
    assert (fault["severity"], reserve["severity"]) == ("critical", "critical")
    do(server, fault)
    do(server, reserve)
    assert not server.sql("SELECT * FROM hugepage_recommendations WHERE area = 'cgroup'")
    assert server.sql("SELECT restart_outlook o FROM hugepage_status") == [{"o": "hugetlb"}]


def advisors(shared_buffers: int, connections: int) -> dict[str, int]:
    """Pages of 2 MB (or a limit in them) that widespread rules come to."""
    return {
        "shared_buffers alone": pages(shared_buffers, 2 * MB),
        "shared_buffers and 1 GB": pages(shared_buffers + GB, 2 * MB),
        "ten percent more": pages(shared_buffers * 11 // 10, 2 * MB),
        "a quarter of memory": meminfo()["MemTotal"] // 4 // (2 * MB),
    }


KNOWN = {1: 537, 2: 1060, 8: 4200, 16: 8386, 32: 16_758, 64: 33_502, 128: 66_913, 256: 133_697}
"""What the server of major 15 said of so many GB of shared_buffers at 100 connections, one page too many if full."""


@pytest.mark.any_major
@pytest.mark.parametrize("gigabytes", KNOWN)
def test_beside_the_rules_of_thumb(new_cluster, gigabytes):
    """Where they fall short and where they waste: ours is what the server itself says, for any size."""
    server = create_extension(new_cluster(max_connections=100).start())
    [row] = server.sql("SELECT shared_memory, pages_needed FROM hugepage_preflight(%s)", f"{gigabytes}GB")
    exact = row["pages_needed"]
    assert exact == math.ceil(row["shared_memory"] / (2 * MB))
    if server.install.major == 15:
        assert exact in (KNOWN[gigabytes], KNOWN[gigabytes] - 1)
    of_advisors = advisors(gigabytes * GB, 100)
    assert of_advisors["shared_buffers alone"] < exact
    # Too much for a small server, too little for a large one.
    assert (of_advisors["shared_buffers and 1 GB"] < exact) == (gigabytes >= 64)
    assert of_advisors["shared_buffers and 1 GB"] != exact and of_advisors["ten percent more"] != exact


@pytest.mark.any_major
def test_limit_equal_to_shared_buffers_is_short(new_cluster, pool, cgroup):
    """An admission check that compares the limit with shared_buffers lets this one through."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group = cgroup()
    group.limit(2 * MB, max=128 * MB)
    create_extension(server.start(within=group))
    # In a container the limit of its engine comes after it.
    [row, *_] = server.sql("SELECT recommended FROM hugepage_recommendations WHERE area = 'cgroup'")
    assert int(row["recommended"]) == main_mapping(server.postmaster).length > 128 * MB


def test_enough_is_not_called_too_little(new_cluster, pool):
    """A server that has what it needs, in pages of either size, gets no advice on its pool."""
    for page_size, setting in ((2 * MB, "2MB"), (GB, "1GB")):
        server = new_cluster(huge_page_size=setting)
        pool(page_size, server.pages_needed(page_size))
        create_extension(server.start())
        session = server.connect()
        found = rows(session, "SELECT setting FROM hugepage_recommendations WHERE area = 'kernel'"
                              " AND setting LIKE '%nr_hugepages' AND recommended::bigint <> 0")
        assert not found
        assert not rows(session, "SELECT FROM hugepage_recommendations WHERE setting = 'huge_page_size'")
        server.stop()


def test_member_of_pg_monitor_reads_it(new_cluster):
    server = create_extension(new_cluster().start())
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    recommendations = server.sql("SELECT setting, recommended FROM hugepage_recommendations")
    assert server.sql("SELECT setting, recommended FROM hugepage_recommendations", user="watcher") == recommendations
