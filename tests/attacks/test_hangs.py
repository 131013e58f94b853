"""Reads that never return: a process whose memory map is locked, and a file system that does not answer. They cost the user whose
files they are the answer, and nobody else; `watch` goes on.
"""

import json
import os
import pwd
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_door import fake, row
from test_strangers import CGROUPS, ORATAB

from harness import processes, sidecar, silent_fuse
from harness.attacker import USER
from harness.poll import until
from harness.sidecar import OK, UNKNOWN
from harness.traces import removed_if_new
from harness.units import MB

pytestmark = pytest.mark.any_major

SECONDS = 1


@contextmanager
def locked_process(directory: Path) -> Iterator[None]:
    """A process of the user postgres: whoever reads its command line waits for ever."""
    mount = directory / "mount"
    mount.mkdir()
    with silent_fuse.mounted(mount, pwd.getpwnam("postgres").pw_uid, "fault"):
        yield


@contextmanager
def silent_include(directory: Path) -> Iterator[None]:
    """A server of the user postgres whose configuration includes a file that does not answer."""
    mount = directory / "mount"
    mount.mkdir()
    postgres = pwd.getpwnam("postgres").pw_uid
    os.chown(mount, postgres, -1)
    with silent_fuse.mounted(mount, postgres) as silent:
        (directory / "PG_VERSION").write_text("15\n")
        (directory / "postgresql.conf").write_text(f"include '{silent.file}'\n")
        with fake(directory, size=64 * MB, uid=postgres):
            yield


ATTACKS = [locked_process, silent_include]


def expected() -> str:
    """What is said of the user's reader."""
    return rf'the files of uid {pwd.getpwnam("postgres").pw_uid} were not read: process \d+ (?:had no answer in time|still waits for an answer)'


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_command_ends_in_time(home, attack):
    with attack(home):
        for command in ("check", "status", "size"):
            begun = time.monotonic()
            answer = sidecar.run("--timeout", f"{SECONDS}s", command)
            assert time.monotonic() - begun < 2 * SECONDS + 1.5
            assert answer.status == UNKNOWN
            assert re.search(expected(), " ".join(answer.stdout.split())), answer


@pytest.mark.parametrize("attack", ATTACKS)
def test_watch_goes_on(home, tmp_path, attack):
    written, log = tmp_path / "status.json", tmp_path / "log"

    def look() -> dict:
        before = written.stat().st_mtime_ns if written.exists() else 0
        until("the next file", lambda: written.exists() and written.stat().st_mtime_ns > before)
        return json.loads(written.read_text())

    def unread(answer: dict) -> list[str]:
        return [note for note in answer["notes"] if "were not read" in note]

    with log.open("w") as stderr:
        watch = sidecar.start("--timeout", f"{SECONDS}s", "watch", "--interval", "200ms", "--state-dir", tmp_path / "state", "--json", written,
                              stderr=stderr)
        try:
            look()
            with attack(home):
                # On a busy machine another user's reader may be late in one survey, too.
                answer = until("the note alone", lambda: next((one for one in [look()] if len(unread(one)) == 1), None))
                assert re.search(expected(), unread(answer)[0]) and answer["verdict"] == "unknown"
                assert all(unread(look()) for _ in range(3)), "it goes on with what answers"
            until("its return", lambda: not unread(look()))
        finally:
            begun = time.monotonic()
            watch.terminate()
            assert watch.wait(10) == OK and time.monotonic() - begun < 4


def waits_for_a_lock(pid: str) -> bool:
    """Readers of users without a server end at once."""
    try:
        return processes.status(int(pid))["State"].startswith("D")
    except FileNotFoundError:
        return False


def test_watch_ends_while_a_read_hangs(home, tmp_path):
    with locked_process(home):
        watch = sidecar.start("watch", "--state-dir", tmp_path / "state")
        children = Path(f"/proc/{watch.pid}/task/{watch.pid}/children")
        readers = until("the reader that waits", lambda: [pid for pid in children.read_text().split() if waits_for_a_lock(pid)])
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(5) == OK
        until("the end of the readers", lambda: not any(Path(f"/proc/{reader}").exists() for reader in readers))


def test_the_caller_may_ignore_its_children():
    """Then a child would be gone without an exit status."""
    expected = sidecar.run("check")
    assert sidecar.run("check", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)).status == expected.status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_readers_too(home, number):
    with silent_include(home):
        # Tests that run in the background of a shell ignore SIGINT.
        process = sidecar.start("status", preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        readers = until("the reader", Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text).split()
        process.send_signal(number)
        process.wait(10)
        assert process.returncode == -number
    until("the end of the readers", lambda: not any(Path(f"/proc/{reader}").exists() for reader in readers))


def test_a_stuck_read_keeps_no_pipe_of_the_caller(home):
    """Who reads the output of a command sees its end."""
    with silent_include(home):
        process = sidecar.start("--timeout", f"{SECONDS}s", "status")
        begun = time.monotonic()
        process.communicate(timeout=30)
        assert time.monotonic() - begun < 2 * SECONDS + 2


POSTGRES = pwd.getpwnam("postgres").pw_uid
MORE_THAN_READERS = 65
GROUP = CGROUPS / "docker/attack"


def removed(group: Path) -> bool:
    """Whether a control group is gone now: it is busy until the kernel is done with its last process."""
    try:
        group.rmdir()
    except OSError:
        return False
    return True


@contextmanager
def container(directory: Path, uids: list[int]) -> Iterator[None]:
    """A container in which each of these users has a process that does not answer."""
    is_new = not GROUP.parent.exists()
    GROUP.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            for uid in uids:
                mount = directory / f"mount-{uid}"
                mount.mkdir()
                silent = stack.enter_context(silent_fuse.mounted(mount, uid, "fault"))
                (GROUP / "cgroup.procs").write_text(str(silent.pid))
            yield
    finally:
        until("the end of the container", lambda: removed(GROUP))
        if is_new:
            GROUP.parent.rmdir()


def sized(home: Path, *arguments: str) -> dict:
    return sidecar.run("--timeout", f"{4 * SECONDS}s", "size", "--postgresql-data", home / "stopped", *arguments, "--format", "json").json()


def seen(home: Path, answer: dict) -> list[str]:
    """Which server of the user postgres is seen, and which that does not run."""
    needs = [need["instance"] for pool in answer["pools"] for need in pool["needs"]]
    told = [one["instance"] for one in answer["not_counted"] if "PG_VERSION" not in one["reason"]]
    # One that runs counts as it is, and of its next start it is told that it is unknown.
    return sorted({name for name in [*needs, *told] if name.startswith(str(home))})


@pytest.fixture
def servers(home) -> Iterator[list[str]]:
    """A server of the user postgres that runs, and one that does not, which only that user can see."""
    os.chown(home, POSTGRES, -1)
    for name in ("running", "stopped"):
        (home / name).mkdir()
        for file, content in (("PG_VERSION", "15\n"), ("postgresql.conf", "shared_buffers = '1 %'\n")):
            (home / name / file).write_text(content)
        for path in (home / name, *(home / name).iterdir()):
            os.chown(path, POSTGRES, -1)
    (home / "stopped").chmod(0o700)
    with fake(home / "running", size=64 * MB, uid=POSTGRES):
        expected = [str(home / "running"), str(home / "stopped")]
        assert seen(home, sized(home)) == expected
        yield expected


@pytest.mark.long
def test_the_users_of_a_container_take_no_time_of_the_hosts_nor_of_another_container(home, servers):
    """Of more users than there are readers at a time each has a file system that does not answer, which takes long to make."""
    other = GROUP.with_name("other-attack")
    with container(home, list(range(2, 2 + MORE_THAN_READERS))):
        assert seen(home, sized(home)) == servers
        other.mkdir()
        try:
            with fake(home, size=64 * MB, uid=USER) as process:
                (other / "cgroup.procs").write_text(str(process.pid))
                answer = sidecar.run("--timeout", f"{4 * SECONDS}s", "status", "--format", "json").json()
                assert row(answer, process)["name"] == str(home)
                assert len([note for note in answer["notes"] if "were not read" in note]) == 1, answer["notes"]
        finally:
            until("the end of the container", lambda: removed(other))


def test_a_user_of_a_container_is_not_the_hosts_of_that_number(home, servers):
    with container(home, [POSTGRES]):
        assert seen(home, sized(home)) == servers


def test_what_a_line_of_oratab_names_costs_no_other_answer(home, servers):
    """Each user's reader looks whose the home is, also those whose own files are elsewhere."""
    if ORATAB.exists():
        pytest.skip("this host has an oratab")
    (home / "mount").mkdir()
    (home / "other/bin").mkdir(parents=True)
    (home / "other/bin/oracle").touch()
    os.chown(home / "other/bin/oracle", POSTGRES, -1)
    with silent_fuse.mounted(home / "mount", USER, "directory"):
        ORATAB.write_text(f"SILENT:{home}/mount/home:N\nOTHER:{home}/other:N\n")
        try:
            answer = sized(home, "--service-account", str(USER))
        finally:
            ORATAB.unlink()
    assert seen(home, answer) == servers
    assert "OTHER" in {one["instance"] for one in answer["not_counted"]}, answer
    assert any(f"in {home}/mount/home were not read: process" in note for note in answer["notes"]), answer["notes"]


@pytest.mark.parametrize("dead", ["version", "data"])
def test_a_stopped_cluster_costs_no_other_answer(home, servers, dead):
    """Debian's directory of a version, or the data directory that a configuration there names: the owner's answer on Debian's clusters."""
    major = Path("/etc/postgresql/98")
    with removed_if_new(major.parent), removed_if_new(major):
        major.mkdir(parents=True)
        mount = major
        if dead == "data":
            mount = home / "mount"
            mount.mkdir()
            (major / "main").mkdir()
            (major / "main/postgresql.conf").write_text(f"data_directory = '{mount}/data'\n")
        with silent_fuse.mounted(mount, POSTGRES, "directory"):
            answer = sized(home)
    assert seen(home, answer) == servers
    notes = [note for note in answer["notes"] if "were not read" in note]
    assert len(notes) == 1 and "in /etc/postgresql were not read: process" in notes[0], notes


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGKILL])
def test_a_signal_to_a_reader_does_not_end_watch(home, tmp_path, number):
    """A user may send any signal to what reads as that user."""
    written = tmp_path / "status.json"
    with silent_include(home):
        watch = sidecar.start("--timeout", f"{3 * SECONDS}s", "watch", "--interval", "200ms", "--state-dir", tmp_path / "state", "--json", written)
        try:
            children = Path(f"/proc/{watch.pid}/task/{watch.pid}/children")
            until("the reader", lambda: children.read_text().split())
            # Those of users without a server have ended then.
            time.sleep(0.5)
            for reader in children.read_text().split():
                os.kill(int(reader), number)
            until("a survey that has ended", written.exists)
            before = written.stat().st_mtime_ns
            until("the next one", lambda: watch.poll() is not None or written.stat().st_mtime_ns > before)
            assert watch.poll() is None
        finally:
            watch.terminate()
            assert watch.wait(30) == OK
