#!/usr/bin/env python3
"""The scenarios in three lanes, which run at the same time: lanes.py RESULTS MARKS PYTEST_ARGUMENT...

Two lanes beside have the tests of which others see nothing, and which need no pool of huge pages, `host` has all others:
tests/conftest.py decides by their marks and fixtures. The locks of tests/harness/lock.py keep tests apart that would see each other. MARKS is an expression
for pytest's -m, or empty. Leaves LANE.xml and LANE.xml.status in RESULTS for scripts/tally, and lanes.status with 0 if the host is
as before.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.cluster import TEMPLATE, Install, template
from harness.kernel import meminfo
from harness.processes import run
from harness.refusal import refusal
from harness.signals import unwind_on_signals
from harness.undisturbed import BESIDE, HOST, LANE, undisturbed
from harness.units import GB

TESTS = Path(__file__).parent
NO_TESTS_COLLECTED = 5


ENOUGH_MEMORY = 12 * GB
"""Bytes of available memory from which on the clusters of all lanes may lie in memory. At most they took 2.3 GB of it (df(1) every 0.3 s),
in a test whose server has as much shared memory, and whose pool has as many huge pages."""


@contextmanager
def clusters_in_memory() -> Iterator[None]:
    """Temporary files are in memory until the block ends, if this host has enough of it and lets us mount.

    Thousands of clusters' files are made and deleted. ext4 takes no inode that was deleted minutes ago (recently_deleted in
    fs/ext4/ialloc.c) and looks at each of them again: a copy of a data directory takes it a second, and a tmpfs a tenth of that.
    """
    if refusal() or os.geteuid() != 0 or meminfo()["MemAvailable"] < ENOUGH_MEMORY:
        yield
        return
    directory = tempfile.mkdtemp(prefix="pg_hugepages-")
    try:
        run("mount", "-t", "tmpfs", "-o", "mode=1777", "none", directory)
        try:
            tempfile.tempdir = directory
            yield
        finally:
            tempfile.tempdir = None
            run("umount", directory)
    finally:
        os.rmdir(directory)


def start(lane: str, results: Path, marks: str, arguments: list[str], output: int | None) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-c", TESTS / "pytest.ini", "--rootdir", TESTS, "-m", marks, "--junitxml",
         results / f"{lane}.xml", *arguments],
        stdin=subprocess.DEVNULL, stdout=output, stderr=output and subprocess.STDOUT,
        env={**os.environ, LANE: lane, "TMPDIR": tempfile.gettempdir(), TEMPLATE: str(template(Install.find().bindir))})


def stop(process: subprocess.Popen) -> None:
    """Let it restore the host."""
    if process.poll() is None:
        process.terminate()
    process.wait()


def main(results: Path, marks: str, arguments: list[str]) -> int:
    """All lanes; what the others printed follows when they have ended. The exit status is that of a lane that failed, else 0."""
    statuses = []
    with ExitStack() as scope:
        scope.enter_context(undisturbed(lambda: print("Waiting for another run of tests on this host.", flush=True)))
        scope.enter_context(clusters_in_memory())
        printed = {lane: scope.enter_context(open(results / f"{lane}.log", "w+")) for lane in BESIDE}
        running = {lane: start(lane, results, marks, arguments, output.fileno()) for lane, output in printed.items()}
        running = {HOST: start(HOST, results, marks, arguments, None), **running}
        for process in running.values():
            scope.callback(stop, process)
        for lane, process in running.items():
            status = process.wait()
            (results / f"{lane}.xml.status").write_text(f"{status}\n")
            statuses.append(status)
            if lane in printed:
                printed[lane].seek(0)
                print(f"\nThe lane {lane}:\n{printed[lane].read()}", flush=True)
    (results / "lanes.status").write_text("0\n")
    return next((status for status in statuses if status not in (0, NO_TESTS_COLLECTED)), 0)


if __name__ == "__main__":
    unwind_on_signals()
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
