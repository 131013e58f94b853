"""restart_outlook and hugepage_preflight() say the same of a restart, and the restart says whether they were right.

Where only the server's program can tell, hugepage_status has the answer that the worker got, or says that it has none.
"""

import os
import re

import pytest

from harness.cluster import Cluster, StartFailed, rows
from harness.next_boot import well
from harness.preloaded import PRELOADED, WATCHED, await_answer
from harness.smaps import main_mapping
from harness.status import checked_status, create_extension
from harness.units import GB, MB

pytestmark = pytest.mark.own_servers

NOT_ANSWERED = re.compile(r'^("\S+" is newer than the last reload: SELECT pg_reload_conf\(\)|a restart is pending for \w+)'
                          r".*; .*SELECT \* FROM hugepage_preflight\(\)")
"""What is said of files that only the server's program can tell the meaning of."""


def outlook(server: Cluster) -> str:
    """What hugepage_preflight() expects, the same as hugepage_status, unless that says why it does not know."""
    [status] = server.sql("SELECT restart_outlook, notes FROM hugepage_status")
    [start] = server.sql("SELECT will_start, lands_in FROM hugepage_preflight()")
    lands_in = start["lands_in"] or "fails"
    if status["restart_outlook"] != lands_in:
        assert status["restart_outlook"] == "unknown"
        assert any(NOT_ANSWERED.search(note) for note in status["notes"]), status
    assert start["will_start"] == {"fails": False, "hugetlb": True, "base": True}.get(lands_in, start["will_start"])
    return lands_in


def assert_restart_lands(server: Cluster, expected: str) -> None:
    """A restart lands where it was said to."""
    assert outlook(server) == expected
    server.stop()
    try:
        server.start()
        found = main_mapping(server.postmaster).landed_in
    except StartFailed:
        found = "fails"
    assert found == expected


@pytest.mark.parametrize("spare,huge_pages,expected", [
    (0, "try", "hugetlb"), (1, "try", "hugetlb"), (-1, "try", "base"), (-1, "on", "fails"), (0, "on", "hugetlb"),
])
def test_pool_exact_and_one_short(new_cluster, pool, spare, huge_pages, expected):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB) + spare)
    create_extension(server.start())
    server.conf(huge_pages=huge_pages)
    assert_restart_lands(server, expected)


def test_taken_by_a_second_cluster_that_keeps_it(new_cluster, pool):
    other, server = new_cluster(), new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 2 * needed - 1)
    create_extension(server.start())
    assert outlook(server) == "hugetlb"
    other.start()
    # The other one is in base pages; ours keeps its own.
    assert_restart_lands(server, "hugetlb")
    server.stop()
    other.restart()
    server.start()
    assert_restart_lands(server, "base")


def test_surplus_only(new_cluster, pool):
    """The pool was lowered under the server: its pages go when it stops."""
    server = new_cluster()
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    borrowed.resize(0)
    assert_restart_lands(server, "base")


def test_overcommit_only(new_cluster, pool):
    """The kernel may find such pages or not: nobody can promise them."""
    server = new_cluster()
    pool(2 * MB, 0, server.pages_needed(2 * MB))
    create_extension(server.start())
    assert outlook(server) == "unknown"
    server.conf(huge_pages=True)
    [row] = server.sql("SELECT will_start, lands_in FROM hugepage_preflight()")
    assert row == {"will_start": None, "lands_in": "unknown"}


def test_shrunk_while_running(new_cluster, pool):
    server = new_cluster(huge_pages=True)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    assert outlook(server) == "hugetlb"
    borrowed.resize(borrowed.persistent() - 1)
    assert_restart_lands(server, "fails")


def test_cgroup_reservation(new_cluster, pool, cgroup):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    group = cgroup()
    create_extension(server.start(within=group))
    assert outlook(server) == "hugetlb"
    # The kernel takes no limit below what is reserved, so the server outgrows this one.
    group.limit(2 * MB, rsvd_max=needed * 2 * MB)
    assert outlook(server) == "hugetlb"
    server.conf(shared_buffers="130MB")
    wanted = server.sql("SELECT pages_needed n FROM hugepage_preflight()")[0]["n"]
    borrowed.resize(borrowed.persistent() + wanted - needed)
    assert outlook(server) == "base"
    [row] = server.sql("SELECT cause, pages_missing FROM hugepage_preflight()")
    assert row == {"cause": "cgroup_limit", "pages_missing": wanted - needed}
    server.stop()
    server.start(within=group)
    assert main_mapping(server.postmaster).landed_in == "base"


def test_cgroup_limit_that_kills_later(new_cluster, pool, cgroup):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group = cgroup()
    create_extension(server.start(within=group))
    group.limit(2 * MB, max=(needed - 1) * 2 * MB)
    [row] = server.sql("SELECT will_start, lands_in, cause FROM hugepage_preflight()")
    assert row == {"will_start": None, "lands_in": "hugetlb", "cause": "cgroup_limit"}


@pytest.mark.parametrize("settings,expected", [
    ({"shared_buffers": "256MB"}, "base"),
    ({"shared_buffers": "64MB"}, "hugetlb"),
    ({"max_connections": 3000}, "base"),
    ({"huge_pages": False}, "base"),
    ({"huge_page_size": "1GB"}, "base"),
    ({"shared_buffers": "256MB", "huge_pages": True}, "fails"),
    ({"shared_preload_libraries": "nonesuch"}, "fails"),
    ({"work_mem": "8MB"}, "hugetlb"),
])
def test_of_the_configuration_on_disk(new_cluster, pool, settings, expected):
    """Nothing has been reloaded: the files alone have changed."""
    server = new_cluster(**WATCHED)
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    await_answer(server)
    session = server.connect()
    checked_status(server, session, verdict=well(), restart_outlook="hugetlb")
    server.conf(**settings)
    await_answer(server)
    row = checked_status(server, session, restart_outlook=expected)
    assert ("configuration on disk" in row["message"]) == (expected != "hugetlb")
    assert_restart_lands(server, expected)


def test_hint_of_a_change_on_disk_is_exact(new_cluster, pool):
    server = new_cluster(**WATCHED)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    server.conf(shared_buffers="333MB")
    await_answer(server)
    [row] = server.sql("SELECT hint, recommended_nr_hugepages FROM hugepage_status")
    wanted = row["recommended_nr_hugepages"]
    assert str(wanted) in row["hint"]
    borrowed.resize(wanted - 1)
    assert outlook(server) == "base"
    borrowed.resize(wanted)
    assert_restart_lands(server, "hugetlb")


def test_a_crash_counts_where_it_loses_more(new_cluster, pool):
    """The configuration on disk would fit what is left of the pool, but a crash restart asks for what runs."""
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    server.conf(shared_buffers="32MB")
    await_answer(server)
    borrowed.resize(needed - 1)
    row = checked_status(server, verdict="warning", landed_in="hugetlb", restart_outlook="hugetlb", crash_outlook="base")
    assert "crash" in row["message"] and str(needed) in row["hint"]
    assert server.crash()
    assert main_mapping(server.postmaster).landed_in == "base"
    await_answer(server)
    # In base pages a crash has nothing to lose any more; what was lost is the history's.
    checked_status(server, verdict="warning", landed_in="base", restart_outlook="hugetlb", crash_outlook="base")


def test_a_crash_loses_pages_beside_a_configuration_that_is_refused(new_cluster, pool):
    """Two findings: the one does not hide the other."""
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    server.conf(shared_preload_libraries="nonesuch")
    await_answer(server)
    borrowed.resize(needed - 1)
    checked_status(server, verdict="critical", restart_outlook="fails", crash_outlook="base")
    found = {row["finding"]: row["severity"] for row in server.sql("SELECT * FROM hugepage_findings")}
    assert (found["restart_fails"], found["crash_loses"], found.get("restart_loses")) == ("critical", "warning", None)
    assert server.crash()
    assert main_mapping(server.postmaster).landed_in == "base"


def test_a_server_in_base_pages_gets_none_by_a_crash(new_cluster, pool):
    """Its configuration on disk would land, but a crash restart asks for what runs."""
    server = new_cluster(shared_buffers="300MB", **WATCHED)
    create_extension(server.start())
    server.conf(shared_buffers="64MB")
    await_answer(server)
    server.sql("CHECKPOINT")
    [row] = server.sql("SELECT pages_needed FROM hugepage_preflight()")
    pool(2 * MB, row["pages_needed"])
    checked_status(server, landed_in="base", restart_outlook="hugetlb", crash_outlook="base")
    assert server.crash()
    assert main_mapping(server.postmaster).landed_in == "base"
    assert_restart_lands(server, "hugetlb")


@pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])
def test_a_file_that_comes_and_goes(new_cluster, pool, preloaded):
    """A file put into a directory that is included; and include_if_exists, of which only the asker knows while there is none."""
    server = new_cluster(**(PRELOADED if preloaded else {}))
    parts = server.data / "conf.d"
    parts.mkdir()
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include_dir 'conf.d'\ninclude_if_exists 'more.conf'\n")
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    if preloaded:
        await_answer(server)
    session = server.connect()

    def of_view() -> str:
        return rows(session, "SELECT restart_outlook o FROM hugepage_status")[0]["o"]

    for name in ("conf.d/10.conf", *(["more.conf"] if preloaded else [])):
        assert of_view() == "hugetlb"
        (server.data / name).write_text("shared_buffers = 200MB\n")
        assert of_view() == "unknown"
        assert outlook(server) == "base"
        # What it was told is for all of a preloaded server.
        assert of_view() == ("base" if preloaded else "unknown")
        os.unlink(server.data / name)
        assert of_view() == "unknown"
        assert outlook(server) == "hugetlb"
        if not preloaded:
            server.reload(session)
    # Without the worker nobody asks whether the reload has refused a value.
    assert of_view() == ("hugetlb" if preloaded else "unknown")


def test_a_value_that_a_reload_refuses(new_cluster, pool):
    """The server says so in its log and forgets it: its files are as loaded, nothing is pending, and no start accepts them."""
    server = new_cluster(work_mem="5MB", **WATCHED)
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    await_answer(server)
    server.conf(work_mem="5XB")
    server.reload()
    await_answer(server)
    row = checked_status(server, verdict="critical", restart_outlook="fails")
    assert 'invalid value for parameter "work_mem": "5XB"' in row["message"]
    assert_restart_lands(server, "fails")


def test_gigantic_pages_on_disk(new_cluster, pool):
    """Another page size means another pool."""
    server = new_cluster()
    gigantic = pool(GB, 1)
    pool(2 * MB, 0)
    create_extension(server.start())
    assert outlook(server) == "base"
    server.conf(huge_page_size="1GB")
    assert_restart_lands(server, "hugetlb")
    gigantic.resize(0)
    assert outlook(server) == "base"
