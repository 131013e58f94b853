"""One hierarchy of cgroups v2 whose memory controller counts huge pages (memory_hugetlb_accounting), or does not."""

import re
from pathlib import Path

import psycopg2
import pytest

from harness.next_boot import well
from harness.poll import until
from harness.shared_buffers import TABLE, fill_shared_buffers
from harness.status import create_extension
from harness.units import MB


def limited(new_cluster, pool, group, **files):
    """A server with a table of 120 MB on disk, started anew in a group; not a page of its shared buffers is touched."""
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    fill_shared_buffers(server, 120 * MB)
    server.stop()
    limits = group(**files)
    server.start(within=limits)
    return server, limits


def touch_all_buffers(server):
    server.sql(f"SELECT pg_prewarm('{TABLE}')")


def test_memory_max_counts_huge_pages(new_cluster, pool, group, accounting, check_both):
    """Critical before anything breaks; then it does break as foretold.

    With the limit of the hint nothing breaks, not even beside more processes than there were.
    """
    accounting(True)
    server, limits = limited(new_cluster, pool, group, **{"memory.max": 90 * MB})
    row = check_both(server, verdict="critical", landed_in="hugetlb")
    assert str(limits.file("memory.max")) in row["hint"], row["hint"]
    with pytest.raises(psycopg2.Error):
        touch_all_buffers(server)
    assert limits.events("max") > 0
    [(path, size)] = re.findall(r"(/sys/\S+/memory\.max) to at least (\d+) bytes", row["hint"])
    Path(path).write_text(size)
    until("the server to recover or to end", lambda: server.ready() or not server.running())
    server.restart(within=limits)
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    touch_all_buffers(server)


def test_memory_max_does_not_count_huge_pages(new_cluster, pool, group, accounting, check_both):
    """No finding, and all pages can be touched."""
    accounting(False)
    server, _limits = limited(new_cluster, pool, group, **{"memory.max": 90 * MB})
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    touch_all_buffers(server)


def test_memory_max_that_suffices(new_cluster, pool, group, accounting, check_both):
    accounting(True)
    server, _limits = limited(new_cluster, pool, group, **{"memory.max": 700 * MB})
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    touch_all_buffers(server)


def test_memory_high_slows_down(new_cluster, pool, group, accounting, check_both):
    accounting(True)
    server, limits = limited(new_cluster, pool, group, **{"memory.high": 90 * MB})
    row = check_both(server, verdict="warning", landed_in="hugetlb")
    assert str(limits.file("memory.high")) in row["hint"], row["hint"]


def test_memory_oom_group_ends_the_whole_server(new_cluster, pool, group, accounting, check_both):
    """As foretold, one session that needs too much memory ends the postmaster, too, and the server's log has no line of it."""
    accounting(False)
    server, limits = limited(new_cluster, pool, group, **{"memory.max": 200 * MB, "memory.oom.group": 1})
    check_both(server, verdict="notice", landed_in="hugetlb", restart_outlook="hugetlb")
    [finding] = server.sql("SELECT message FROM hugepage_findings WHERE finding = 'oom_group'")
    assert f"({limits.file('memory.oom.group')} is 1)" in finding["message"], finding["message"]
    logged = server.log()
    with pytest.raises(psycopg2.Error):
        server.sql("SELECT length(repeat('x', 500000000) || repeat('y', 500000000))")
    until("the server to end", lambda: not server.running())
    assert server.log() == logged
    # The next start removes what it left in /dev/shm.
    server.start()
