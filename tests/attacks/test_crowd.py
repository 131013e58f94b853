"""A thousand processes of a user, each of which makes its own kind of trouble, cost root's check little more than a thousand that sleep."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import sidecar
from harness.attacker import USER
from harness.processes import kill_group
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.long]

COUNT = 1000
CROWD = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
count, program = int(sys.argv[1]), sys.argv[2]
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))
segment = libc.shmget(0, 4096, 0o1600)
me = os.getuid()

def named(name):
    libc.prctl(15, name)

def idle():
    pass

def postgres():
    named(b"postgres")

def pmon():
    named(b"ora_pmon_X")

def session():
    named(b"oracle_1_x")

def mappings():
    named(b"postgres")
    libc.mmap.restype = ctypes.c_void_p
    begin = libc.mmap(None, ctypes.c_size_t(60_000 * 4096), 1, 0x22, -1, ctypes.c_long(0))
    for page in range(0, 60_000, 2):
        libc.mprotect(ctypes.c_void_p(begin + page * 4096), ctypes.c_size_t(4096), 3)

def attachments():
    named(b"ora_pmon_Y")
    for _ in range(60_000):
        libc.shmat(segment, None, 0)

def arguments():
    os.execve(program, ["postgres", "600", *["0." + "0" * 120_000] * 8], {})

def environment():
    os.execve(program, ["postgres", "600"], {f"V{number}": "x" * 120_000 for number in range(8)})

def user_namespace():
    libc.unshare(0x10000000)
    try:
        for file, text in (("setgroups", "deny"), ("uid_map", f"0 {me} 1"), ("gid_map", f"0 {me} 1")):
            open(f"/proc/self/{file}", "w").write(text)
    except OSError:
        pass
    named(b"postgres")

def deep():
    for _ in range(20):
        os.makedirs("d" * 250, exist_ok=True)
        os.chdir("d" * 250)
    named(b"postgres")

def directory():
    os.makedirs("data", exist_ok=True)
    os.chdir("data")
    for file, text in (("PG_VERSION", "15\n"), ("postmaster.pid", "1\n" * 8), ("postgresql.conf", "include 'postgresql.conf'\n" * 40_000)):
        open(file, "w").write(text)
    os.execve(program, ["postgres", "600"], {})

def files():
    named(b"postgres")
    for _ in range(900):
        os.open("/dev/null", os.O_RDONLY)

def escapes():
    named(b"ora_pmon_\x1b[2J\n")

light = [postgres, pmon, session, arguments, environment, user_namespace, deep, directory, files, escapes]
kinds = [idle] * count if program == "idle" else [mappings] * 20 + [attachments] * 20
kinds += [light[number % len(light)] for number in range(count - len(kinds))]
for kind in kinds:
    ready = os.pipe()
    if not os.fork():
        os.close(ready[0])
        kind()
        os.close(ready[1])
        time.sleep(600)
        os._exit(0)
    os.close(ready[1])
    os.read(ready[0], 1)
    os.close(ready[0])
libc.shmctl(segment, 0, None)
print("ready", flush=True)
time.sleep(600)
"""


@contextmanager
def crowd(home: Path, program: str, count: int = COUNT) -> Iterator[None]:
    script = home / "crowd.py"
    script.write_text(CROWD)
    process = subprocess.Popen([sys.executable, script, str(count), program, str(USER)], cwd=home, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        kill_group(process)


def cost(*arguments: str) -> tuple[sidecar.Answer, float, int]:
    """The answer, the least seconds of three calls, and the most memory."""
    calls = [sidecar.run_measured(*arguments) for _ in range(3)]
    return calls[0][0], min(used.seconds for _, used in calls), max(used.peak_memory for _, used in calls)


def test_a_crowd(home):
    """Two crowds have to start before `check` is measured beside it."""
    program = home / "postgres"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with crowd(home, "idle"):
        before, idle, _ = cost("check")
    with crowd(home, str(program)):
        answer, seconds, memory = cost("check")
        assert answer.status == before.status
        assert seconds < 5 * idle and memory < 16 * MB, (seconds, idle, memory)
        assert len(sidecar.run("status", "--format", "json").json()["strangers"]) <= 10
