"""Shared memory in base pages that the kernel grants, or refuses: a start with more than memory and swap, or than System V limits, fails."""

import pytest

from harness.cluster import Cluster, StartFailed
from harness.kernel import meminfo
from harness.preloaded import await_answer
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import GB, MB

pytestmark = pytest.mark.own_servers


def preflight(server: Cluster, buffers: int | None = None) -> dict:
    """What is said of a start, with as many bytes of shared_buffers."""
    [row] = server.sql("SELECT * FROM hugepage_preflight(%s)", buffers and f"{buffers // MB}MB")
    return row


def starts(server: Cluster) -> bool:
    """Whether a real restart succeeds."""
    server.stop()
    try:
        server.start()
    except StartFailed:
        return False
    return main_mapping(server.postmaster).landed_in == "base"


@pytest.mark.parametrize("settings", [{"huge_pages": "off"}, {"huge_pages": "try"}, {"shared_memory_type": "sysv"}], ids=str)
def test_more_than_memory_and_swap(new_cluster, pool, settings):
    pool(2 * MB, 0)
    server = new_cluster(**settings)
    create_extension(server.start())
    memory = meminfo()
    total = memory["MemTotal"] + memory["SwapTotal"]
    # Shared memory is some 2% larger than shared_buffers.
    most = total * 96 // 100 // MB * MB
    row = preflight(server, most)
    assert (row["will_start"], row["lands_in"]) == (True, "base"), row
    row = preflight(server, total)
    assert (row["will_start"], row["lands_in"]) == (False, None), row
    assert "MemTotal" in row["detail"] and "vm.overcommit_memory" in row["detail"], row
    assert row["hint"].startswith("Reduce shared_buffers until shared memory takes at most "), row
    assert "huge_pages = off" not in row["hint"], row
    server.conf(shared_buffers=f"{total // MB}MB")
    assert preflight(server)["will_start"] is False
    assert starts(server) is False
    server.conf(shared_buffers=f"{most // MB}MB")
    assert starts(server) is True


def test_a_running_server_says_it(new_cluster, pool):
    """By the view: critical, whatever the pool has."""
    pool(2 * MB, 0)
    server = new_cluster(shared_preload_libraries="pg_hugepages", huge_pages="off")
    create_extension(server.start())
    server.conf(shared_buffers=f"{(meminfo()['MemTotal'] + meminfo()['SwapTotal'] + GB) // MB}MB")
    server.reload()
    await_answer(server)
    [row] = server.sql("SELECT verdict, restart_outlook, crash_outlook, message FROM hugepage_status")
    assert (row["verdict"], row["restart_outlook"], row["crash_outlook"]) == ("critical", "fails", "base"), row
    assert "MemTotal" in row["message"], row


@pytest.mark.parametrize("name", ["shmmax", "shmall"])
def test_limits_of_system_v(new_cluster, pool, name, tmp_path):
    """In an IPC namespace of its own, so that no limit of the host changes."""
    pool(2 * MB, 0)
    server = new_cluster(shared_memory_type="sysv")
    value = {"shmmax": 256 * MB, "shmall": 256 * MB // 4096}[name]
    through = ["unshare", "--ipc", "sh", "-c", f'mount -o remount,rw /proc 2>/dev/null; echo {value} >/proc/sys/kernel/{name}; exec "$@"', "sh"]
    create_extension(server.start(through=through))
    row = preflight(server, 200 * MB)
    assert (row["will_start"], row["lands_in"]) == (True, "base"), row
    row = preflight(server, 256 * MB)
    assert (row["will_start"], row["lands_in"]) == (False, None), row
    assert f"kernel.{name}" in row["detail"] and row["hint"].startswith("Reduce shared_buffers"), row
    server.stop()
    server.conf(shared_buffers="256MB")
    with pytest.raises(StartFailed):
        server.start(through=through)
