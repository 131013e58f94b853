"""One hierarchy of cgroups v2 whose memory controller counts huge pages (memory_hugetlb_accounting), or does not."""

from harness.next_boot import well
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
    """Its limits are not read: then no start is foretold, and nothing is called ok."""
    accounting(True)
    server, _limits = limited(new_cluster, pool, group, **{"memory.max": 90 * MB})
    row = check_both(server, verdict="notice", landed_in="hugetlb", restart_outlook="unknown")
    assert any("memory_hugetlb_accounting" in note for note in row["notes"]), row["notes"]


def test_memory_max_does_not_count_huge_pages(new_cluster, pool, group, accounting, check_both):
    """No finding, and all pages can be touched."""
    accounting(False)
    server, _limits = limited(new_cluster, pool, group, **{"memory.max": 90 * MB})
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    touch_all_buffers(server)
