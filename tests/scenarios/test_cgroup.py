"""Hugetlb limits of a control group: rsvd.max makes the server fall back, max kills its processes later."""

from harness.status import checked_status, create_extension
from harness.units import MB

LIMIT = 64 * MB


def test_reservation_limit_falls_back(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group.limit(2 * MB, rsvd_max=LIMIT)
    create_extension(server.start(within=group))
    checked_status(server, verdict="notice", landed_in="base", cause="cgroup_limit", pages_needed=needed,
                   pages_missing=needed - LIMIT // (2 * MB), restart_outlook="base")


def test_limit_below_the_segment_is_critical(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    group.limit(2 * MB, max=LIMIT)
    create_extension(server.start(within=group))
    checked_status(server, verdict="critical", landed_in="hugetlb", cause=None)
    [row] = server.sql("SELECT cgroup_limit, cgroup_usage FROM hugepage_pools WHERE node IS NULL AND page_size = %s", 2 * MB)
    assert row == {"cgroup_limit": LIMIT, "cgroup_usage": group.usage(2 * MB)}


def test_limit_that_fits(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group.limit(2 * MB, max=needed * 2 * MB, rsvd_max=needed * 2 * MB)
    create_extension(server.start(within=group))
    checked_status(server, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")


def test_moved_into_a_limit_while_running(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    group.limit(2 * MB, max=LIMIT)
    group.join(server.postmaster)
    checked_status(server, verdict="critical", landed_in="hugetlb")


def test_limit_of_an_outer_group(new_cluster, pool, cgroup):
    server, outer = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    outer.limit(2 * MB, max=LIMIT)
    create_extension(server.start(within=cgroup(outer)))
    checked_status(server, verdict="critical", landed_in="hugetlb")


def test_unreadable_limit(new_cluster, pool, cgroup):
    """An unreadable limit is not unlimited: there is a note, and the outlook is unknown."""
    server, group = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    group.show(False)
    create_extension(server.start(within=group))
    row = checked_status(server, verdict="notice", landed_in="hugetlb", restart_outlook="unknown")
    assert any(str(group.directory) in note for note in row["notes"])


def test_limit_of_a_session_is_not_that_of_the_server(new_cluster, pool, cgroup):
    """The postmaster maps the segment, so its group counts, whichever group the asking session is in."""
    server, group = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    group.limit(2 * MB, max=LIMIT, rsvd_max=LIMIT)
    session = server.connect()
    group.join(session.info.backend_pid)
    checked_status(server, session, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    outside = server.connect()
    group.join(server.postmaster)
    checked_status(server, outside, verdict="critical", landed_in="hugetlb", restart_outlook="base")
    session.close()
