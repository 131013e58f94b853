"""An ordinary user makes a server of its own choice, and root looks: what is read, and what it changes."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import sidecar
from harness.attacker import USER
from harness.processes import kill_group
from harness.units import GB, KB, MB

MANY = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    os.posix_spawn(sys.argv[2], ["postgres", "600"], {})
print("ready", flush=True)
time.sleep(600)
"""
SECRET = "only root may know this"
SERVER = """
import ctypes, mmap, sys, time
ctypes.CDLL(None).prctl(15, b"postgres")
memory = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x4000)
print("ready", flush=True)
time.sleep(600)
"""


@contextmanager
def fake(directory: Path, *arguments: str, size: int = 17 * GB, uid: int = USER):
    """A process that calls itself postgres, with shared memory that takes no page."""
    script = directory / "server.py"
    script.write_text(SERVER)
    process = subprocess.Popen(["postgres", script, str(size), *arguments], executable=sys.executable, cwd=directory, user=uid,
                               group=uid, extra_groups=[], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()


COUNTED = ("--service-account", str(USER))
"""So that the files of the user's server are read at all."""


def status(*arguments: str, **options) -> dict:
    return sidecar.run("status", *arguments, "--format", "json", **options).json()


def row(answer: dict, process: subprocess.Popen) -> dict:
    [found] = [row for row in answer["instances"] if row["pid"] == process.pid]
    return found


def test_it_counts_for_nothing(home):
    before = status()
    with fake(home) as process:
        answer = status()
        [found] = [one for one in answer["strangers"] if one["pid"] == process.pid]
        assert (found["uid"], found["name"], found["reason"]) == (USER, "postgres", f"runs as uid {USER}")
        assert (answer["verdict"], pools(answer), answer["instances"]) == (before["verdict"], pools(before), before["instances"])
        assert answer["recommendations"] == before["recommendations"]
        assert f"pid={process.pid}" not in sidecar.run("metrics").stdout and str(home) not in sidecar.run("metrics").stdout
        assert f"not counted: process {process.pid} (postgres, " in sidecar.run("status").stdout
        assert row(status(*COUNTED), process)["shared_memory"] == 17 * GB


def pools(answer: dict) -> list[dict]:
    """Without what depends on the memory that is free at the moment."""
    return [{name: value for name, value in pool.items() if not name.startswith("capacity")} for pool in answer["pools"]]


@pytest.mark.own_servers
@pytest.mark.parametrize("name", ["PG_VERSION", "postgresql.conf", "postgresql.auto.conf", "global/pg_control"])
@pytest.mark.parametrize("kind", ["link", "hard link", "through /proc"])
def test_no_file_of_roots_is_read(home, name, kind):
    secret = home.parent / f"secret-{os.getpid()}"
    secret.write_text(f"huge_pages = '{SECRET}'\n")
    secret.chmod(0o600)
    try:
        (home / name).parent.mkdir(exist_ok=True)
        if kind == "hard link":
            # As where fs.protected_hardlinks is 0.
            os.link(secret, home / name)
        else:
            (home / name).symlink_to(secret if kind == "link" else f"/proc/self/root{secret}")
        with fake(home) as process:
            text = sidecar.run("status", *COUNTED, "--format", "json").stdout
            assert SECRET not in text and SECRET not in sidecar.run("status", *COUNTED).stdout
            assert row(status(*COUNTED), process)["notes"]
    finally:
        secret.unlink()


def test_nothing_but_plain_files_is_opened(home):
    """By strace, whatever the configuration names."""
    pipe = home / "pipe"
    os.mkfifo(pipe)
    names = ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/self/mem", "/etc/shadow", pipe, home / "loop"]
    (home / "loop").symlink_to("loop")
    (home / "postgresql.conf").write_text("".join(f"include_if_exists '{name}'\n" for name in names))
    os.chown(home / "postgresql.conf", USER, USER)
    with fake(home), tempfile.TemporaryDirectory() as traces:
        # A file for each process, so that no line is cut.
        sidecar.run("status", *COUNTED, through=["strace", "-ff", "-e", "trace=open,openat,openat2", "-y", "-o", f"{traces}/trace"])
        lines = [line for trace in Path(traces).iterdir() for line in trace.read_text().splitlines()]
        opened = [line for line in lines if "O_PATH" not in line and " = -1" not in line]
    assert any("postgresql.conf" in line for line in opened)
    for name in map(str, names):
        assert not any(line.rstrip().endswith(f"<{name}>") for line in opened), name


def test_time_and_memory_have_an_end(home):
    (home / "long.conf").touch()
    os.truncate(home / "long.conf", 4 << 40)
    part = "# " + "x" * 1000 + "\n"
    (home / "part.conf").write_text(part * 1000)
    (home / "postgresql.conf").write_text("include 'long.conf'\n" * 400 + "include 'part.conf'\n" * 400)
    (home / "PG_VERSION").write_text("1" * (16 << 20))
    for file in home.iterdir():
        os.chown(file, USER, USER)
    with fake(home):
        answer, used = sidecar.run_measured("status", *COUNTED)
        assert used.seconds < 10 and used.peak_memory < 64 * MB
        assert "long.conf" in answer.stdout


def test_many_that_call_themselves_servers(home):
    """1,000 processes of a user: one line, whose name a user has chosen, in bounded time and memory."""
    count = 1000
    script, program = home / "many.py", home / "postgres"
    script.write_text(MANY)
    shutil.copy("/bin/sleep", program)
    before = status()
    many = subprocess.Popen([sys.executable, script, str(count), program], cwd=home, user=USER, group=USER, extra_groups=[],
                            stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert many.stdout.readline() == "ready\n"
        answer, used = sidecar.run_measured("status", "--format", "json")
        answer = answer.json()
        assert len(answer["strangers"]) == 1 + len(before["strangers"])
        assert len(json.dumps([answer["strangers"], answer["notes"]])) - len(json.dumps(before["notes"])) < 4 * KB
        assert (answer["verdict"], pools(answer)) == (before["verdict"], pools(before))
        assert used.seconds < 2 and used.peak_memory < 32 * MB, used
    finally:
        kill_group(many)
