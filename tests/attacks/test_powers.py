"""What root, or a user with capabilities in its place, could see and a server's user can't: no file of that user leads there."""

import os
import pwd
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_door import COUNTED, SECRET, fake, row, status

from harness import sidecar
from harness.attacker import USER
from harness.traces import made_directory

pytestmark = pytest.mark.any_major

MONITOR = 4713
"""A user without account, who runs the sidecar with capabilities."""
NAME = "known-to-root"
READING = ["sys_ptrace", "dac_read_search", "dac_override"]
BECOMING = ["setuid", "setgid", "kill"]


@pytest.fixture
def closed(home) -> Iterator[Path]:
    """A directory that root alone may search: a file, a name that is no file, and the configuration of a cluster."""
    place = home.parent / f"closed-{os.getpid()}"
    (place / f"{NAME}.conf").mkdir(parents=True)
    (place / NAME).mkdir()
    (place / NAME / "postgresql.conf").write_text(f"data_directory = '{place / NAME}'\n")
    (place / NAME / "PG_VERSION").write_text("15\n")
    (place / "a.conf").write_text(f"huge_pages = '{SECRET}'\n")
    place.chmod(0o700)
    yield place
    shutil.rmtree(place)


def outputs(**options) -> str:
    answers = [sidecar.run(command, *COUNTED, *more, **options) for command in ("status", "size") for more in ([], ["--format", "json"])]
    return "".join(answer.stdout + answer.stderr for answer in answers)


@pytest.mark.parametrize("target", [".", "a.conf"])
def test_what_a_link_leads_to(home, closed, target):
    """T8: of the directory that a server's user links to, not even a name is told."""
    (home / "link").symlink_to(closed / target)
    (home / "postgresql.conf").write_text(f"{'include_dir' if target == '.' else 'include'} 'link'\n")
    os.chown(home / "postgresql.conf", USER, USER)
    with fake(home) as process:
        assert any(f"{home}/link" in note and "denied" in note for note in row(status(*COUNTED), process)["notes"])
        text = outputs()
    assert NAME not in text and SECRET not in text, text


def test_clusters_that_a_link_leads_to(closed):
    """T8: a major version of stopped clusters that the servers' user makes in its place."""
    major = Path("/etc/postgresql/98")
    with made_directory(major.parent):
        major.symlink_to(closed)
        try:
            text = outputs()
            closed.chmod(0o755)
            of_open = outputs()
        finally:
            major.unlink()
    assert NAME not in text and NAME in of_open, (text, of_open)


def test_what_one_account_lays_in_the_way_of_another(home):
    """In Debian's directory, which is the user postgres's: another account's reader takes its own private file for no configuration there."""
    private = home / "private"
    data = home / "data"
    for place in (private, data):
        place.mkdir()
        (place / "PG_VERSION").write_text("15\n")
    (private / "postgresql.conf").write_text(f"data_directory = '{data}'\nhuge_pages = off\nshared_buffers = '{SECRET}'\n")
    (data / "postgresql.conf").write_text("huge_pages = try\n")
    for path in (private, data, *private.iterdir(), *data.iterdir()):
        os.chown(path, USER, USER)
        path.chmod(0o700)
    major = Path("/etc/postgresql/98")
    with made_directory(major.parent), made_directory(major):
        (major / "main").symlink_to(private)
        os.chown(major / "main", pwd.getpwnam("postgres").pw_uid, -1, follow_symlinks=False)
        try:
            text = outputs()
            told = sidecar.run("size", *COUNTED, "--postgresql-data", data, "--format", "json").json()
        finally:
            (major / "main").unlink()
    assert SECRET not in text, text
    needs = [need for pool in told["pools"] for need in pool["needs"]] + told["not_counted"]
    assert [one for one in needs if one["instance"] == str(data)], told
    assert not [one for one in told["not_counted"] if one["instance"] == str(data) and "huge_pages = off" in one["reason"]], told


@pytest.mark.parametrize("capabilities", [READING, READING + BECOMING], ids=["reading", "becoming"])
@pytest.mark.parametrize("name", ["postgresql.conf", "postgresql.auto.conf"])
def test_capabilities_open_no_door(home, closed, name, capabilities):
    """T10: who has been given root's powers over files reads for a server's user only what that user may."""
    (home / name).symlink_to(closed / "a.conf")
    held = ",".join(f"+{capability}" for capability in capabilities)
    through = ["setpriv", f"--reuid={MONITOR}", f"--regid={MONITOR}", "--clear-groups", f"--inh-caps={held}", f"--ambient-caps={held}"]
    # It could: only so there is something that holds.
    assert SECRET in subprocess.run([*through, "cat", home / name], capture_output=True, text=True, check=True).stdout
    with fake(home):
        text = outputs(through=through)
        assert str(home) in text
    assert SECRET not in text, text


IN_ITS_OWN_ROOT = """
import ctypes, mmap, os, sys, time
memory = mmap.mmap(-1, 64 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
os.chroot(sys.argv[1])
os.chdir("/data")
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
ctypes.CDLL(None).prctl(15, b"postgres")
print("ready", flush=True)
time.sleep(600)
"""


def test_a_root_directory_of_its_own(home):
    """A server that chroot(2) has confined names its files from there: of the host's of that name nothing is read."""
    inside = home / "room" / home.relative_to("/")
    for directory, value in ((home, "on"), (inside, "off")):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "more.conf").write_text(f"huge_pages = {value}\n")
    data = home / "room/data"
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    (data / "postgresql.conf").write_text(f"include '{home}/more.conf'\n")
    process = subprocess.Popen(["postgres", "-c", IN_ITS_OWN_ROOT, home / "room", str(USER), "-D", "/data"], executable=sys.executable,
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        found = row(status(*COUNTED), process)
    finally:
        process.kill()
        process.wait()
    assert (found["name"], found["version"], found["huge_pages"]) == ("/data", "15", "off"), found


CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, SYS_PTRACE = 0, 1, 2, 19


def test_capabilities_of_the_program_write_nothing(home):
    """Whoever runs a program whose file has capabilities writes where that user may, and nowhere else."""
    program = home / "program"
    shutil.copy(sidecar.binary(), program)
    held = sum(1 << one for one in (CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, SYS_PTRACE))
    os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, held, 0, 0, 0))
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-of-root-") as of_root:
        os.chmod(of_root, 0o755)
        for place, is_written in ((Path(of_root), False), (home, True)):
            for more in (["metrics", "--textfile", place / "hugepages.prom"], ["watch", "--once", "--state-dir", place / "state"]):
                done = as_user(program, *more)
                assert "panicked" not in done.stderr and (done.returncode == sidecar.UNKNOWN or is_written), done
            assert (place / "hugepages.prom").exists() == (place / "state").exists() == is_written, done


def test_a_program_that_is_set_user_id(home):
    program = home / "program"
    shutil.copy(sidecar.binary(), program)
    program.chmod(0o4755)
    done = as_user(program, "status")
    assert (done.returncode, done.stdout) == (sidecar.UNKNOWN, "") and "set-user-ID" in done.stderr


def as_user(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, user=USER, group=USER, extra_groups=[], capture_output=True, text=True, timeout=60)
