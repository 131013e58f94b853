"""One node of 2 GB whose memory ends while `collapse` works: it stops above the reserve, and nobody is killed."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness import sidecar
from harness.cluster import Unsupported
from harness.kernel import meminfo
from harness.poll import until
from harness.processes import run
from harness.shared_buffers import fill_shared_buffers
from harness.sidecar import WARNING
from harness.smaps import main_mapping
from harness.units import MB

BUFFERS = 600 * MB
HOG = "import sys, time; held = bytearray(int(sys.argv[1])); held[::4096] = b'x' * len(held[::4096]); print(flush=True); time.sleep(600)"


@contextmanager
def less_memory(left: int) -> Iterator[None]:
    """Another program takes what is available, but for `left`."""
    taken = meminfo()["MemAvailable"] - left
    hog = subprocess.Popen([sys.executable, "-c", HOG, str(taken)], stdout=subprocess.PIPE)
    try:
        assert hog.stdout.readline() == b"\n"
        yield
    finally:
        hog.kill()
        hog.communicate()


def test_it_stops_where_memory_ends(new_cluster, pool, thp):
    pool(2 * MB, 0)
    thp("advise")
    server = new_cluster(shared_buffers=f"{BUFFERS // MB}MB").start()
    fill_shared_buffers(server, BUFFERS // 2)
    collapse = sidecar.start("collapse", "--instance", server.data, "--yes", "--max-rate", 8)
    try:
        until("the first huge pages", lambda: collapse.poll() is not None or main_mapping(server.postmaster).pmd_mapped > 0)
        if collapse.poll() is not None:
            raise Unsupported("MADV_COLLAPSE of shared memory is since Linux 6.1")
        with less_memory(left=150 * MB):
            output, errors = collapse.communicate(timeout=120)
    finally:
        collapse.kill()
        collapse.communicate()
    # The kernel itself may have no huge page before the reserve is reached.
    stopped = "available, and keeps" in errors or "(ENOMEM)" in errors
    assert collapse.returncode == WARNING and "stopped: " in errors and stopped, (output, errors)
    assert 0 < main_mapping(server.postmaster).pmd_mapped < BUFFERS
    assert server.sql("SELECT count(*) FROM touched")[0]["count"] == BUFFERS // 2 // 8192
    assert "Out of memory" not in run("dmesg")
