"""Hugetlb limits of a control group: rsvd.max makes the server fall back, max kills its processes later."""

import pytest

from harness import sidecar
from harness.cluster import StartFailed, rows
from harness.preloaded import WATCHED, await_answer
from harness.processes import run
from harness.smaps import main_mapping
from harness.status import checked_status, create_extension
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

LIMIT = 64 * MB


def test_reservation_limit_falls_back(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group.limit(2 * MB, rsvd_max=LIMIT)
    create_extension(server.start(within=group))
    checked_status(server, verdict="notice", landed_in="base", cause="cgroup_limit", pages_needed=needed,
                   pages_missing=needed - LIMIT // (2 * MB), restart_outlook="base")
    [hit] = server.sql("SELECT severity, message FROM hugepage_findings WHERE finding = 'limit_hit'")
    assert hit["severity"] == "notice" and group.refusals(2 * MB) > 0
    assert f"{group.directory}/hugetlb.2MB.events: max {group.refusals(2 * MB)})" in hit["message"]


def test_limit_below_the_segment_is_critical(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    group.limit(2 * MB, max=LIMIT)
    create_extension(server.start(within=group))
    checked_status(server, verdict="critical", landed_in="hugetlb", cause=None)
    [row] = server.sql("SELECT cgroup_limit, cgroup_usage FROM hugepage_pools WHERE page_size = %s", 2 * MB)
    assert row == {"cgroup_limit": LIMIT, "cgroup_usage": group.usage(2 * MB)}


def test_limit_that_fits(new_cluster, pool, cgroup):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group.limit(2 * MB, max=needed * 2 * MB, rsvd_max=needed * 2 * MB)
    create_extension(server.start(within=group))
    checked_status(server, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb")
    assert "limit_hit" not in findings(server)


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


def test_an_error_lasts_as_long_as_its_cause(new_cluster, root, tmp_path):
    """A session that could not read the server's group reads it again at its next call."""
    server = new_cluster()
    # In a mount namespace of its own, so that the bind mount over the file is seen by the server alone.
    server.start(through=["unshare", "--mount", "--propagation", "private"])
    create_extension(server)
    session, file = server.connect(), f"/proc/{server.postmaster}/cgroup"
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0o000)

    def errors() -> list[str]:
        [row] = rows(session, "SELECT notes FROM hugepage_status")
        return [note for note in row["notes"] if file in note]

    run("nsenter", "--target", str(server.postmaster), "--mount", "--", "mount", "--bind", str(unreadable), file)
    assert "Permission denied" in errors()[0]
    run("nsenter", "--target", str(server.postmaster), "--mount", "--", "umount", file)
    assert errors() == []


def fault_limit(server, group, spare=0):
    """Allow the group what this server takes, and some pages more or less."""
    group.limit(2 * MB, max=(server.pages_needed(2 * MB) + spare) * 2 * MB)


def test_no_restart_into_a_limit_below_the_segment(new_cluster, pool, cgroup):
    """The pool was raised since the start. A restart would land, and then be killed at the first touch of the last pages."""
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    fault_limit(server, group, -10)
    create_extension(server.start(within=group))
    pool(2 * MB, needed)
    row = checked_status(server, verdict="critical", landed_in="base", cause="unknown", restart_outlook="hugetlb")
    assert row["hint"] == f"Set {group.directory}/hugetlb.2MB.max to at least {needed * 2 * MB} bytes and restart the server."
    assert "killed by SIGBUS" in row["message"]
    group.limit(2 * MB, max=needed * 2 * MB)
    assert checked_status(server, verdict="notice", landed_in="base")["hint"] == "Restart the server."


def test_limit_that_the_next_segment_exceeds(new_cluster, pool, cgroup):
    """A limit of ten pages more than the segment holds it, and not that of a larger shared_buffers on disk."""
    server, group = new_cluster(**WATCHED), cgroup()
    needed = server.pages_needed(2 * MB)
    fault_limit(server, group, 10)
    server.conf(shared_buffers="256MB")
    larger = server.pages_needed(2 * MB)
    server.conf(shared_buffers="128MB")
    pool(2 * MB, larger)
    create_extension(server.start(within=group))
    assert checked_status(server, landed_in="hugetlb", restart_outlook="hugetlb")["message"].count("cgroup") == 0
    server.conf(shared_buffers="256MB")
    await_answer(server)
    row = checked_status(server, verdict="critical", landed_in="hugetlb", pages_needed=needed, restart_outlook="hugetlb")
    assert row["hint"] == f"Set {group.directory}/hugetlb.2MB.max to at least {larger * 2 * MB} bytes."
    assert findings(server)["cgroup_limit"] == "critical"


def test_two_servers_that_share_a_limit(new_cluster, pool, cgroup):
    """Each fits alone, and both together exceed what the group may touch: both say so."""
    first, second, group = new_cluster(), new_cluster(), cgroup()
    needed = first.pages_needed(2 * MB)
    assert needed == second.pages_needed(2 * MB)
    fault_limit(first, group, needed // 2)
    pool(2 * MB, 2 * needed)
    for server in (first, second):
        create_extension(server.start(within=group))
    for server in (first, second):
        row = checked_status(server, verdict="critical", landed_in="hugetlb", restart_outlook="hugetlb")
        assert findings(server)["shared_limit"] == "critical"
        assert row["hint"] == f"Set {group.directory}/hugetlb.2MB.max to at least {2 * needed * 2 * MB} bytes."


@pytest.mark.parametrize("buffers,limit,will_start,comes", [
    (128 * MB, 4 * MB, False, False), (128 * MB, 8 * MB, None, False), (128 * MB, 100 * MB, None, True),
    (2048 * MB, 32 * MB, False, False), (2048 * MB, 50 * MB, None, False), (2048 * MB, 512 * MB, None, True),
])
def test_start_below_what_it_touches(new_cluster, pool, cgroup, buffers, limit, will_start, comes):
    """A start touches 80 bytes of each buffer and its WAL buffers for certain, and more that nobody knows before."""
    server, group = new_cluster(shared_buffers=f"{buffers // MB}MB"), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    start_beside(server, group)
    assert preflight(server)["will_start"] is True
    group.limit(2 * MB, max=limit)
    row = preflight(server)
    assert row["will_start"] is will_start and "SIGBUS" in row["detail"], row
    assert row["lands_in"] == (None if will_start is False else "hugetlb"), row
    file = f"{group.directory}/hugetlb.2MB.max"
    assert file in row["detail"] and file in row["hint"], row
    status = checked_status(server, verdict="critical", restart_outlook="hugetlb" if will_start is None else "fails")
    assert status["crash_outlook"] == status["restart_outlook"]
    assert starts_within(server, group) is comes


def test_start_below_a_limit_of_an_outer_group(new_cluster, pool, cgroup):
    """As the kubelet's 0 of a pod without hugepages-2Mi: `try` is killed, too."""
    server, pod = new_cluster(), cgroup()
    pool(2 * MB, server.pages_needed(2 * MB))
    group = cgroup(pod)
    start_beside(server, group)
    pod.limit(2 * MB, max=0)
    row = preflight(server)
    assert row["will_start"] is False and f"{pod.directory}/hugetlb.2MB.max" in row["detail"], row
    checked_status(server, verdict="critical", restart_outlook="fails", crash_outlook="fails")
    server.conf(huge_pages="off")
    assert preflight(server)["will_start"] is True
    server.conf(huge_pages="try")
    assert starts_within(server, group) is False


@pytest.mark.parametrize("huge_pages", ["try", "on"])
def test_reservation_limit_is_no_sigbus(new_cluster, pool, cgroup, huge_pages):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 2 * needed)
    create_extension(server.start())
    server.conf(huge_pages=huge_pages)
    group.limit(2 * MB, max=4 * MB, rsvd_max=LIMIT)
    group.join(server.postmaster)
    row = preflight(server)
    comes = huge_pages == "try"
    assert (row["will_start"], row["lands_in"]) == (comes, "base" if comes else None), row
    assert starts_within(server, group) is comes
    assert not comes or main_mapping(server.postmaster).landed_in == "base"


def preflight(server):
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    return row


def start_beside(server, group):
    """Start it and move it into the group, which is not charged for its pages: the kernel takes no limit below what is in use."""
    create_extension(server.start())
    # What sessions touch, too.
    preflight(server)
    group.join(server.postmaster)


def starts_within(server, group):
    """Whether a real restart in the group succeeds."""
    server.stop()
    try:
        server.start(within=group)
    except StartFailed:
        # A start that succeeds removes what the killed one has left.
        server.conf(huge_pages="off")
        server.start().stop()
        return False
    return True


SIGNS_OF_A_POD = {
    "groups": ("kubepods-pod", []),
    "environment": ("", ["env", "KUBERNETES_SERVICE_HOST=10.96.0.1"]),
}
"""What a pod's server sees of Kubernetes: a part of its group's name, and what it is started by."""


@pytest.mark.files_answer
@pytest.mark.parametrize("sign", SIGNS_OF_A_POD)
@pytest.mark.parametrize("kind", ["max", "rsvd_max"])
def test_limit_of_a_pod_is_in_its_manifest(new_cluster, pool, cgroup, sign, kind):
    """The kubelet writes the files of groups for each container anew, so no file is the remedy."""
    name, through = SIGNS_OF_A_POD[sign]
    server, group = new_cluster(), cgroup(name=name)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    group.limit(2 * MB, **{kind: LIMIT})
    create_extension(server.start(within=group, through=through))
    line = f"hugepages-2Mi: {2 * needed}Mi"
    step = f"et the limit hugepages-2Mi of the pod to at least {2 * needed}Mi in its manifest"
    row = checked_status(server, landed_in="hugetlb" if kind == "max" else "base")
    assert step in row["hint"] and "/sys/fs/cgroup" not in row["hint"]
    assert server.sql("SELECT setting, current, command FROM hugepage_recommendations WHERE area = 'cgroup'") == [
        {"setting": "hugepages-2Mi", "current": f"{LIMIT // MB}Mi", "command": line}]
    if sign == "groups":
        status = sidecar.run("status").stdout
        assert step in " ".join(status.split()) and f"Set {group.directory}" not in status
        of_oracle = sidecar.run("oracle", "print", "hp_finding.dat").stdout
        assert line in of_oracle and f"> {group.directory}" not in of_oracle


def findings(server):
    """The severity of each finding, by its name."""
    return {row["finding"]: row["severity"] for row in server.sql("SELECT * FROM hugepage_findings")}
