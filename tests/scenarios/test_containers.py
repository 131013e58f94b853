"""Containers of a pod by real runtimes: what initdb and a start get, and what was said before by the extension and by the sidecar."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import sidecar
from harness.cluster import Cluster, Unsupported
from harness.container import CONTAINER, NAMESPACE, POD, SERVICE, Pod, pod
from harness.preloaded import PRELOADED, await_answer
from harness.prometheus import MONITORING, samples
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

pytestmark = [pytest.mark.own_servers, pytest.mark.files_answer, pytest.mark.any_major]

RUNTIMES = [pytest.param(name, version, id=f"{name}-v{version}") for name in ("runc", "crun") for version in (2, 1)]
KUBELETS = [pytest.param(param.values[0], param.values[1], False, id=param.id) for param in RUNTIMES] + [
    pytest.param(name, 2, True, id=f"{name}-v2-and-a-new-kubelet") for name in ("runc", "crun")]
PAGE = 2 * MB
FIRST_USER = 1 << 20
"""Of the node's users the one that is root in a user namespace."""
NAME = f"{NAMESPACE}/{POD}/{CONTAINER}"
"""What the sidecar calls the container."""


@pytest.mark.parametrize(("runtime", "version", "reserves"), KUBELETS)
def test_initdb_without_a_limit_beside_a_pool(new_cluster, pool, root, tmp_path, runtime, version, reserves):
    """The most frequent public report: the node has a pool, and the pod no hugepages-2Mi."""
    server = new_cluster()
    pool(PAGE, 100)
    with pod(runtime, 0, version, tmp_path, kubelet_reserves=reserves) as of_pod:
        done = of_pod.call(server.install.bindir / "initdb", "-A", "trust", "-D", "/tmp/new")
    said = done.stdout + done.stderr
    if of_pod.limits_reservations:
        assert done.returncode == 0, said
    else:
        assert done.returncode == 1 and "Bus error" in said and "exit code 135" in said, said


def asked(server: Cluster, of_pod: Pod) -> tuple[dict, dict, dict]:
    """The preflight, the extension's row and the sidecar's, of a server that runs in its container."""
    await_answer(server)
    [preflight] = server.sql("SELECT * FROM hugepage_preflight()")
    [row] = server.sql("SELECT * FROM hugepage_status")
    said = json.loads(sidecar.run("status", "--format", "json", through=of_pod.node).stdout)
    [seen] = [one for one in said["instances"] if one["name"] == str(server.data)]
    assert seen["pod"] == NAME
    # The line of the manifest, if there is one, is the same.
    lines = [{one["command"] for one in answers if one["setting"] == "hugepages-2Mi"}
             for answers in (said["recommendations"], server.sql("SELECT setting, command FROM hugepage_recommendations"))]
    assert lines[0] <= lines[1], lines
    assert lines[0] or "hugepages-2Mi" not in (seen["hint"] or ""), seen
    return preflight, row, seen


def starts() -> Iterator[Any]:
    """All limits where cgroups are of version 2; elsewhere, where the kernel does the same by other files, those that show it, and the
    others are long."""
    for kubelet, limit, huge_pages in product(KUBELETS, ["unlimited", "none", "quarter", "one page short", "right"], ["try", "on"]):
        is_short = kubelet.id.endswith("v2") or (limit, huge_pages) in {("none", "try"), ("one page short", "on"), ("right", "try")}
        yield pytest.param(*kubelet.values, limit, huge_pages, id=f"{kubelet.id}-{limit}-{huge_pages}", marks=[] if is_short else [pytest.mark.long])


@pytest.mark.parametrize(("runtime", "version", "reserves", "limit", "huge_pages"), starts())
def test_a_start_and_what_was_said_before(new_cluster, pool, root, tmp_path, runtime, version, reserves, limit, huge_pages):
    server = new_cluster(**PRELOADED, huge_pages="off")
    needed = server.pages_needed(PAGE)
    pages = {"unlimited": None, "none": 0, "quarter": needed // 4, "one page short": needed - 1, "right": needed}[limit]
    pool(PAGE, needed + 10)
    with pod(runtime, pages and pages * PAGE, version, tmp_path, kubelet_reserves=reserves and pages is not None) as of_pod:
        with of_pod.server(server) as comes:
            assert comes, server.log()
            if pages is not None:
                assert (int(of_pod.file("rsvd.max")) == pages * PAGE) is of_pod.runtime.limits_reservations
                assert int(of_pod.file("max")) == pages * PAGE
            create_extension(server)
            server.conf(huge_pages=huge_pages)
            server.reload()
            preflight, row, seen = asked(server, of_pod)
        with of_pod.server(server) as comes:
            log, landed, running = server.log(), None, []
            if comes:
                landed = main_mapping(of_pod.postmaster()).landed_in
                running = asked(server, of_pod)
    is_right = pages in (None, needed)
    if of_pod.limits_reservations:
        assert (comes, landed) == (is_right or huge_pages == "try", "hugetlb" if is_right else "base" if huge_pages == "try" else None), log
        assert comes or "could not map anonymous shared memory: Cannot allocate memory" in log
    elif is_right or not pages:
        assert (comes, landed) == ((True, "hugetlb") if is_right else (False, None)), log
    # What was said is what came, or was said to be unknown.
    for who, starts, lands in (("preflight", preflight["will_start"], preflight["lands_in"]),
                               ("extension", None, row["restart_outlook"]), ("sidecar", None, seen["restart_outlook"])):
        assert starts in (None, comes), (who, starts, log)
        assert lands in (None, "unknown", landed if comes else "fails"), (who, lands, landed, log)
    # The sidecar does not know what a changed configuration asks for. In the same state it says what the extension says.
    line = f"the limit hugepages-2Mi of the pod to at least {2 * needed}Mi in its manifest"
    hints = [preflight["hint"], row["hint"], *(answer["hint"] for answer in running)]
    assert is_right or all(line in (hint or "") for hint in hints), hints
    if running:
        # Of the next boot only the node's files tell.
        names = ["landed_in", "pages_needed", *([] if is_right else ["hint"])]
        same = [{name: answer[name] for name in names} for answer in running[1:]]
        assert same[0] == same[1] and same[0]["landed_in"] == landed, (same, landed)
        # The container does not see all groups that may limit it, such as its pod's. The node does.
        assert running[1]["cause"] in (running[2]["cause"], "unknown" if reserves else None), running
        assert running[2]["restart_outlook"] == landed and running[1]["restart_outlook"] in (landed, "unknown")
        crash = [answer["crash_outlook"] for answer in running[1:]]
        assert crash[0] in (crash[1], "unknown") and crash[1] == landed, crash


@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_a_user_namespace_changes_no_answer(new_cluster, pool, root, runtime):
    """`hostUsers: false`: the server's user is another one on the node, where it has no name."""
    server = new_cluster(**PRELOADED, huge_pages="on")
    needed = server.pages_needed(PAGE)
    pool(PAGE, needed)
    (server.root / "pod").mkdir()
    with pod(runtime, needed * PAGE, 2, server.root / "pod", FIRST_USER) as of_pod, of_pod.server(server) as comes:
        assert comes, server.log()
        create_extension(server)
        preflight, row, seen = asked(server, of_pod)
        text = sidecar.run("status", through=of_pod.node).stdout
    assert f"in {NAME}: {needed * 2} MB in pages of 2 MB" in " ".join(text.split()), text
    assert (row["landed_in"], seen["landed_in"], seen["restart_outlook"]) == ("hugetlb",) * 3
    # Limits may be above what the container sees.
    assert {preflight["lands_in"], row["restart_outlook"]} <= {"hugetlb", "unknown"}
    assert (seen["huge_pages"], seen["version"]) == ("on", str(server.install.major)), seen


def daemonset(*args: str) -> dict:
    """The container of the DaemonSet's manifest, with more arguments than it has there or with others."""
    [_namespace, made] = yaml.safe_load_all((MONITORING / "kubernetes/daemonset.yaml").read_text())
    [container] = made["spec"]["template"]["spec"]["containers"]
    return container | {"args": [*args] if args[0] == "status" else [*container["args"], *args]}


@pytest.mark.whole_host
@pytest.mark.parametrize("lacks", [pytest.param(0, id="right", marks=pytest.mark.long), pytest.param(1, id="one-page-short")])
@pytest.mark.parametrize(("runtime", "version", "reserves"), KUBELETS)
def test_the_daemonset_foretells_what_the_host_and_the_extension_do(new_cluster, pool, root, tmp_path, runtime, version, reserves, lacks):
    """It is in a cgroup namespace of its own, and in a pod that may have no huge pages itself."""
    server = new_cluster(**PRELOADED, huge_pages="try")
    needed = server.pages_needed(PAGE)
    pool(PAGE, needed + 10)
    (tmp_path / "textfile").mkdir()
    with pod(runtime, (needed - lacks) * PAGE, version, tmp_path, kubelet_reserves=reserves) as of_pod, of_pod.server(server) as comes:
        assert comes, server.log()
        create_extension(server)
        landed = main_mapping(of_pod.postmaster()).landed_in
        _, row, seen = asked(server, of_pod)
        done = of_pod.run_beside(daemonset("status", "--root", "/host", "--format", "json"), sidecar.binary(),
                                 {"host": Path("/"), "textfile": tmp_path / "textfile"})
    said = json.loads(done.stdout)
    [other] = [one for one in said["instances"] if one["name"] == str(server.data)]
    # Processes end meanwhile, page tables grow, and a pod does not see the groups above those beside it, which are a part of the runtime's
    # name. The start is told from the uptime, in whole seconds.
    may_differ = {"processes", "page_tables_total", "page_tables_max", "container", "started"}
    starts = [datetime.fromisoformat(one["started"].replace("Z", "+00:00")) for one in (seen, other)]
    assert abs(starts[0] - starts[1]) <= timedelta(seconds=1)
    different = {name: (seen[name], other[name]) for name in seen.keys() - may_differ if seen[name] != other[name]}
    assert not different, "\n".join(f"{name}: {pair}" for name, pair in different.items())
    assert landed == "base" if lacks and of_pod.limits_reservations else "hugetlb"
    for outlook in ("restart_outlook", "crash_outlook"):
        assert other[outlook] == landed and row[outlook] in (landed, "unknown"), (outlook, other, row)
    line = f"the limit hugepages-2Mi of the pod to at least {2 * needed}Mi in its manifest"
    assert (line in (other["hint"] or "")) is bool(lacks), other
    # Its own pod's limit is 0, and none of the node's.
    assert {pool["cgroup_limit"] for pool in said["pools"]} == {None}, said["pools"]


@pytest.mark.parametrize(("options", "first_user", "group"), [
    pytest.param([], 0, "libpod_parent/libpod-[0-9a-f]{64}", id="alone"),
    pytest.param([], FIRST_USER, "libpod_parent/libpod-[0-9a-f]{64}", id="users-of-its-own"),
    # As Podman's units have it.
    pytest.param(["--cgroups=split"], 0, f"/{SERVICE}", id="of-a-unit"),
    pytest.param(["--cgroups=split"], FIRST_USER, f"/{SERVICE}", id="of-a-unit-with-users-of-its-own"),
])
def test_a_server_in_a_container_of_podman(new_cluster, pool, root, options, first_user, group):
    if not shutil.which("podman"):
        raise Unsupported("no container of podman was tried: it is not installed")
    server = new_cluster(huge_pages="on")
    needed = server.pages_needed(PAGE)
    pool(PAGE, needed)
    (server.root / "pod").mkdir()
    with pod("runc", None, 2, server.root / "pod", first_user) as of_pod, of_pod.by_podman(server, *options) as postmaster:
        landed = main_mapping(postmaster).landed_in
        said = sidecar.run("status", "--format", "json", through=of_pod.node).json()
    assert landed == "hugetlb"
    [seen] = [one for one in said["instances"] if one["pid"] == postmaster]
    assert (seen["landed_in"], seen["pod"]) == (landed, None) and re.fullmatch(group, seen["container"]), seen


@pytest.mark.parametrize("lacks", [pytest.param(0, id="right"), pytest.param(1, id="one-page-short")])
@pytest.mark.parametrize("first_user", [pytest.param(0, id="users-of-the-node"), pytest.param(FIRST_USER, id="users-of-its-own")])
def test_a_server_in_a_container_of_containerd(new_cluster, pool, root, first_user, lacks):
    """Its group `/default/db` could be anybody's by its name; the file of its limit is the remedy, because there is no manifest."""
    if not shutil.which("containerd"):
        raise Unsupported("no container of containerd was tried: it is not installed")
    server = new_cluster(**PRELOADED, huge_pages="try")
    needed = server.pages_needed(PAGE)
    pool(PAGE, needed + 10)
    (server.root / "pod").mkdir()
    limit = (needed - lacks) * PAGE
    with pod("runc", limit, 2, server.root / "pod", first_user) as of_pod, of_pod.by_containerd(server) as postmaster:
        landed = main_mapping(postmaster).landed_in
        create_extension(server)
        await_answer(server)
        [preflight] = server.sql("SELECT * FROM hugepage_preflight()")
        [row] = server.sql("SELECT * FROM hugepage_status")
        said = sidecar.run("status", "--format", "json", through=of_pod.node).json()
        text = " ".join(sidecar.run("status", through=of_pod.node).stdout.split())
    assert landed == "base" if lacks and of_pod.limits_reservations else "hugetlb"
    [seen] = [one for one in said["instances"] if one["pid"] == postmaster]
    assert (seen["container"], seen["pod"]) == ("/default/db", None) and "in /default/db: " in text, text
    same = ["landed_in", "pages_needed", "huge_pages", "huge_page_size"]
    assert [seen[name] for name in same] == [row[name] for name in same] and seen["landed_in"] == landed, (seen, row)
    assert seen["restart_outlook"] == seen["crash_outlook"] == landed, seen
    # No cgroup file system is in containerd's own specification, so no limit is seen from inside, which is said.
    assert (preflight["lands_in"], row["restart_outlook"], row["crash_outlook"]) == ("unknown",) * 3, (preflight, row)
    assert "no cgroup file system with the hugetlb controller is mounted" in " ".join(row["notes"]), row["notes"]
    file = f"hugetlb.2MB.{'rsvd.max' if of_pod.runtime.limits_reservations else 'max'} to at least {needed * PAGE} bytes"
    assert (f"et /sys/fs/cgroup/default/db/{file}" in (seen["hint"] or "")) is bool(lacks), seen
    assert "manifest" not in f"{seen['hint']} {row['hint']}"


@pytest.mark.parametrize("first_user", [pytest.param(0, id="users-of-the-node"), pytest.param(FIRST_USER, id="users-of-its-own")])
@pytest.mark.parametrize("runtime", ["runc", "crun"])
def test_the_daemonset_sees_the_servers_of_pods(new_cluster, pool, root, tmp_path, runtime, first_user):
    """With its capabilities, mounts and user, and the image's one program, in a pod of its own: it sees no group above the pods'."""
    server = new_cluster(huge_pages="on")
    needed = server.pages_needed(PAGE)
    pool(PAGE, needed)
    (tmp_path / "textfile").mkdir()
    (server.root / "pod").mkdir()
    with pod(runtime, needed * PAGE, 2, server.root / "pod", first_user) as of_pod, of_pod.server(server) as comes:
        assert comes, server.log()
        volumes = {"host": Path("/"), "textfile": tmp_path / "textfile"}
        done = of_pod.run_beside(daemonset("--once"), sidecar.binary(), volumes)
        text = of_pod.run_beside(daemonset("status", "--root", "/host"), sidecar.binary(), volumes).stdout
    written = samples((tmp_path / "textfile/hugepages.prom").read_text())
    landed = {dict(labels)["hugepage_landed_in"]: value for (name, labels), value in written.items()
              if name == "hugepage_landed_in" and ("name", f"{server.data} in {NAME}") in labels}
    # The memory maps of another user namespace the kernel shows to CAP_SYS_PTRACE alone, which no reader of a mounted root has.
    assert landed.get("unknown" if first_user else "hugetlb") == 1, (done, landed)
    [uninspected] = [value for (name, _), value in written.items() if name == "hugepage_uninspected_instances"]
    assert bool(uninspected) is bool(first_user), done
    # It is root there. On the node that sees them.
    assert ("could not be inspected: run this on the host as root" in " ".join(text.split())) is bool(first_user), text
