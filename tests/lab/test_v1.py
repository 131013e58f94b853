"""Controllers hugetlb and memory in hierarchies v1, beside an empty hierarchy v2, as systemd's hybrid layout."""

from harness.next_boot import well
from harness.shared_buffers import fill_shared_buffers
from harness.status import create_extension
from harness.units import MB

LIMIT = 64 * MB


def test_limit_in_bytes_below_the_segment(new_cluster, pool, group, check_both):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    limits = group(**{"hugetlb.2MB.limit_in_bytes": LIMIT})
    create_extension(server.start(within=limits))
    row = check_both(server, verdict="critical", landed_in="hugetlb", cause=None)
    assert str(limits.file("hugetlb.2MB.limit_in_bytes")) in row["hint"], row["hint"]
    [seen] = server.sql("SELECT cgroup_limit, cgroup_usage FROM hugepage_pools WHERE page_size = %s", 2 * MB)
    assert seen == {"cgroup_limit": LIMIT, "cgroup_usage": int(limits.file("hugetlb.2MB.usage_in_bytes").read_text())}


def test_reservation_limit(new_cluster, pool, group, check_both):
    """hugetlb.2MB.rsvd.limit_in_bytes, since Linux 5.7."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(server.start(within=group(**{"hugetlb.2MB.rsvd.limit_in_bytes": LIMIT})))
    check_both(server, verdict="notice", landed_in="base", cause="cgroup_limit", restart_outlook="base",
               pages_missing=needed - LIMIT // (2 * MB))


def test_limits_that_suffice(new_cluster, pool, group, check_both):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    enough = needed * 2 * MB
    create_extension(server.start(within=group(**{"hugetlb.2MB.limit_in_bytes": enough,
                                                  "hugetlb.2MB.rsvd.limit_in_bytes": enough})))
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")


def test_memory_limit_does_not_count_huge_pages(new_cluster, pool, group, check_both):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start(within=group(**{"memory.limit_in_bytes": 100 * MB})))
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    fill_shared_buffers(server, 110 * MB)
