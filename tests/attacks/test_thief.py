"""A user takes every free page of the pool, again and again: no number that root sees grows with that, and who holds them is named."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness import sidecar
from harness.attacker import USER
from harness.pool import Pool
from harness.prometheus import samples
from harness.sidecar import OK
from harness.smaps import main_mapping
from harness.units import MB

pytestmark = pytest.mark.any_major

TAKE = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.prctl(15, sys.argv[3].encode())
pages, how = int(sys.argv[1]), sys.argv[2]
size = pages * (2 << 20)
if how == "file":
    held = libc.syscall(319, b"", 4 | 21 << 26)    # memfd_create with MFD_HUGETLB and MFD_HUGE_2MB
    os.posix_fallocate(held, 0, size)
else:
    held = mmap.mmap(-1, size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x40000 | 21 << 26)
    for page in range(pages if how == "touched" else 0):
        held[page * (2 << 20)] = 1
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def thief(pool: Pool, how: str, name: str = "thief") -> Iterator[Callable[[], None]]:
    """Takes all pages that are available, at each call."""
    running: list[subprocess.Popen] = []

    def take() -> None:
        pages = pool.numbers().available + pool.numbers().overcommit - pool.numbers().surplus
        if pages:
            process = subprocess.Popen([sys.executable, "-c", TAKE, str(pages), how, name], user=USER, group=USER, extra_groups=[], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            running.append(process)
            assert process.stdout.readline() == "ready\n"
    try:
        yield take
    finally:
        for process in running:
            process.kill()
            process.wait()


def of_2mb(command: str) -> tuple[dict, dict]:
    answer = sidecar.run(command, "--format", "json").json()
    [pool] = [pool for pool in answer["pools"] if pool["page_size"] == 2 * MB and pool.get("node") is None]
    return answer, pool


def recommended(pid: int) -> set[int]:
    """What each output recommends for the pool of 2 MB and the servers that run."""
    status, of_status = of_2mb("status")
    [instance] = [row for row in status["instances"] if row["pid"] == pid]
    data = dict(word.split("=") for word in sidecar.run("check").stdout.split("|")[1].split())
    metrics = samples(sidecar.run("metrics").stdout)
    of_metrics = {int(value) for (name, labels), value in metrics.items()
                  if name == "hugepage_recommended_nr_hugepages" and ("name", instance["name"]) in labels}
    return {of_status["recommended_nr_hugepages"], instance["recommended_nr_hugepages"],
            int(data["recommended_2MB"]), *of_metrics}


@pytest.mark.parametrize("overcommit", [0, 30])
@pytest.mark.parametrize("how", ["touched", "promised", "file"])
def test_three_runs(new_cluster, pool, how, overcommit):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, 40, overcommit=overcommit)
    before = borrowed.numbers()
    with thief(borrowed, how) as take:
        take()
        server.start()
        numbers, of_all = [], before.held + sum(need["pages_needed"] for need in of_2mb("size")[1]["needs"])
        for _ in range(3):
            assert recommended(server.postmaster) == {max(borrowed.persistent(), before.held + needed)}
            assert of_2mb("size")[1]["recommended_nr_hugepages"] == max(borrowed.persistent(), of_all)
            answer = sidecar.run("apply", "--recommended", "--yes")
            assert answer.status == OK, answer
            assert "pages are not counted, because" in answer.stderr
            numbers.append(borrowed.persistent())
            take()
        assert numbers == [numbers[0]] * 3 and numbers[0] == max(before.held + 40, of_all)
        [row] = [row for row in sidecar.run("status", "--format", "json").json()["instances"] if row["pid"] == server.postmaster]
        # The number alone gives the server nothing, and no output says so.
        assert row["hint"].startswith("Free ") and "huge pages that" in row["hint"], row
        named = f"thief (uid {USER})"
        assert (named in row["hint"]) == (named in sidecar.run("size").stdout) == (how == "touched")
    # The advice is true: now a restart is enough.
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"


def test_its_name_is_no_command(new_cluster, pool):
    """A hint shows each command alone on a line, to be typed by root: none of these is a name that a user has chosen."""
    server = new_cluster()
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    with thief(borrowed, "touched", 'run "halt"') as take:
        take()
        server.start()
        shown = sidecar.run("status").stdout
    assert "run 'halt'" in " ".join(shown.split())
    assert "halt" not in [line.strip() for line in shown.splitlines()], shown


SLOW = """
import ctypes, mmap, os, sys
path = "/tmp/" + "d" * 200
os.chdir("/tmp")
os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
for _ in range(300):
    os.makedirs("d" * 250, exist_ok=True)
    os.chdir("d" * 250)
with open("file", "wb+") as file:
    file.truncate(4096)
    # Python's own mmap keeps a file descriptor for each, and a user may have 1,024.
    for number in range(6000):
        assert ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1 + number % 2 * 2, 1, file.fileno(), ctypes.c_long(0)) != -1
held = mmap.mmap(-1, int(sys.argv[1]) * (2 << 20), flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x40000 | 21 << 26)
held[0] = 1
print("ready", flush=True)
sys.stdin.read()
"""


def test_whose_maps_take_too_long(new_cluster, pool, tmp_path):
    """The kernel writes 450 MB for the mappings of a path of 75 kB. What is not read of them in time raises no number."""
    server = new_cluster()
    borrowed = pool(2 * MB, 200)
    place = tmp_path / "thief"
    place.mkdir()
    place.chmod(0o777)
    for above in place.parents[:-1]:
        above.chmod(above.stat().st_mode | 0o011)
    process = None
    try:
        process = subprocess.Popen([sys.executable, "-c", SLOW, str(borrowed.numbers().available - 50), str(place / "deep")], user=USER, group=USER,
                                   extra_groups=[], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == "ready\n"
        server.start()
        for _ in range(3):
            answer = sidecar.run("apply", "--recommended", "--yes")
            assert (answer.status, borrowed.persistent()) == (OK, 200), answer
    finally:
        if process:
            process.kill()
            process.wait()
        subprocess.run(["rm", "-rf", place], check=True)
