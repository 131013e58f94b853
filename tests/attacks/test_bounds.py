"""What a service account's own files and mappings may cost: time, memory and output have an end, and what was not read is told."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_door import fake, row

from harness import sidecar
from harness.units import MB

pytestmark = pytest.mark.any_major

ATTACHED = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmget(0, 1 << 20, 0o1600)
for _ in range(int(sys.argv[1])):
    libc.shmat(segment, None, 0)
libc.shmctl(segment, 0, None)
print("ready", flush=True)
time.sleep(600)
"""


def includes(directory: Path) -> str:
    """960 includes of long names."""
    return "".join(f"include_if_exists '{'x' * 200}/{'y' * 200}/{number:0200}.conf'\n" for number in range(960))


def names(directory: Path) -> str:
    """30,000 names of files that could be configurations. They are links, because as many files take six seconds."""
    many = directory / "many"
    many.mkdir()
    first = many / "first.conf"
    first.touch()
    for number in range(30_000):
        os.link(first, many / f"{number}.conf")
    return "include_dir 'many'\n"


@contextmanager
def servers(directory: Path, configuration: str) -> Iterator[list[subprocess.Popen]]:
    (directory / "PG_VERSION").write_text("15\n")
    (directory / "postgresql.conf").write_text(configuration)
    with fake(directory, size=64 * MB, uid=0) as one, fake(directory, size=64 * MB, uid=0) as two, \
            fake(directory, size=64 * MB, uid=0) as three, fake(directory, size=64 * MB, uid=0) as four:
        yield [one, two, three, four]


@pytest.mark.parametrize("configuration, note", [(includes, "more than 250 files"), (names, "more than 10000 names")])
def test_configurations(home, configuration, note):
    with servers(home, configuration(home)) as processes:
        answer, used = sidecar.run_measured("status", "--format", "json")
        assert used.seconds < 4 and used.peak_memory < 24 * MB, used
        assert len(answer.stdout) < 200_000
        answer = answer.json()
        for process in processes:
            notes = row(answer, process)["notes"]
            assert any(note in one for one in notes) and sum(map(len, notes)) < 20_000, notes


def test_attached_segments(root, home):
    """60,000 attachments of a segment: the server's memory is unknown, and a survey takes no more memory."""
    script = home / "attached.py"
    script.write_text(ATTACHED)
    with subprocess.Popen(["postgres", script, "60000"], executable=sys.executable, cwd=home, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            answer, used = sidecar.run_measured("status", "--format", "json")
            assert used.seconds < 4 and used.peak_memory < 24 * MB, used
            found = row(answer.json(), process)
            assert found["landed_in"] == "unknown"
            assert any("more than 8192 mappings of shared memory" in note for note in found["notes"]), found["notes"]
        finally:
            process.kill()


def test_what_is_mounted_is_read_once_a_survey(home, tmp_path):
    """And not once for each server: a host of containers has thousands of mounts."""
    trace = tmp_path / "trace"

    def reads() -> int:
        sidecar.run("status", through=["strace", "-f", "-e", "trace=openat", "-o", trace])
        return trace.read_text().count('/proc/self/mountinfo"')

    (home / "PG_VERSION").write_text("15\n")
    with fake(home, size=64 * MB, uid=0):
        of_one = reads()
        with fake(home, size=64 * MB, uid=0), fake(home, size=64 * MB, uid=0):
            assert reads() == of_one > 0
