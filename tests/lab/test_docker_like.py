"""A container: namespaces of processes, mounts and cgroups, its cgroup below one of the host's, /sys read-only."""

import json
import subprocess
import sys
from pathlib import Path

import harness
from harness.units import MB

TESTS = Path(harness.__file__).parents[1]


def in_container(prepare=None):
    """What container.py prints. The cgroup is remounted, so that it shows the namespace's root, as container runtimes do."""
    script = (f"umount -l /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup; "
              f"exec env PYTHONPATH={TESTS}:{TESTS}/lab {sys.executable} {TESTS}/lab/container.py")
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--cgroup", "sh", "-c", script],
                          preexec_fn=prepare, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_lands_and_says_so(new_cluster, pool):
    pool(2 * MB, new_cluster().pages_needed(2 * MB))
    rows = in_container()
    assert rows["landed_in"] == rows["view"]["landed_in"] == rows["sidecar"]["landed_in"] == "hugetlb", rows


def test_own_limit_is_seen(new_cluster, pool, cgroup):
    pool(2 * MB, new_cluster().pages_needed(2 * MB))
    group = cgroup()
    group.limit(2 * MB, rsvd_max=64 * MB)
    rows = in_container(group.join)
    assert rows["landed_in"] == "base"
    assert (rows["view"]["cause"], rows["view"]["restart_outlook"]) == ("cgroup_limit", "base"), rows
    assert (rows["sidecar"]["cause"], rows["sidecar"]["restart_outlook"]) == ("cgroup_limit", "base"), rows


def test_limit_of_the_pod_is_hidden_and_not_denied(new_cluster, pool, cgroup):
    """The group around the container's is outside of its namespace: no promise, and no other cause is made up."""
    pool(2 * MB, new_cluster().pages_needed(2 * MB))
    pod = cgroup()
    pod.limit(2 * MB, rsvd_max=64 * MB)
    rows = in_container(cgroup(pod).join)
    assert rows["landed_in"] == "base"
    for row in (rows["view"], rows["sidecar"]):
        assert row["cause"] in ("unknown", "cgroup_limit") and row["restart_outlook"] != "hugetlb", row
