"""Reads that never return: a process whose memory map is locked, and a file system that does not answer. Each command ends in time
and says what does not answer; `watch` goes on without it.
"""

import json
import os
import pwd
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, silent_fuse
from harness.poll import until
from harness.processes import status
from harness.sidecar import OK, UNKNOWN
from harness.units import MB

pytestmark = pytest.mark.any_major

SECONDS = 2


@contextmanager
def locked_process(directory: Path) -> Iterator[int]:
    """A process of the user postgres: whoever reads its command line waits for ever."""
    mount = directory / "mount"
    mount.mkdir()
    with silent_fuse.mounted(mount, pwd.getpwnam("postgres").pw_uid, "fault") as silent:
        yield silent.pid


@contextmanager
def silent_include(directory: Path) -> Iterator[int]:
    """A server of root's whose configuration includes a file that nobody can read."""
    mount = directory / "mount"
    mount.mkdir()
    with silent_fuse.mounted(mount, 0) as silent:
        (directory / "PG_VERSION").write_text("15\n")
        (directory / "postgresql.conf").write_text(f"include '{silent.file}'\n")
        with fake(directory, size=64 * MB, uid=0):
            yield silent.pid


ATTACKS = [(locked_process, 'process {pid} does not answer (reading "/proc/{pid}/cmdline")'),
           (silent_include, '"{directory}/mount" does not answer (reading "{directory}/mount/silent.conf")')]


@pytest.mark.parametrize("attack, why", ATTACKS)
def test_a_command_ends_in_time(home, attack, why):
    with attack(home) as pid:
        for command in ("check", "status", "size", "metrics"):
            begun = time.monotonic()
            answer = sidecar.run("--timeout", f"{SECONDS}s", command)
            assert time.monotonic() - begun < SECONDS + 1.5
            assert answer.status == UNKNOWN
            text = f"no answer within {SECONDS}s: {why.format(pid=pid, directory=home)}\n"
            expected = (f"HUGEPAGES UNKNOWN - {text}", "") if command == "check" else ("", f"hugepage-sidecar: UNKNOWN: {text}")
            assert (answer.stdout, answer.stderr) == expected


@pytest.mark.parametrize("attack, why", ATTACKS)
def test_watch_goes_on(home, tmp_path, attack, why):
    written, log = tmp_path / "status.json", tmp_path / "log"

    def look() -> dict:
        before = written.stat().st_mtime_ns if written.exists() else 0
        until("the next file", lambda: written.exists() and written.stat().st_mtime_ns > before)
        return json.loads(written.read_text())

    with log.open("w") as stderr:
        watch = sidecar.start("--timeout", f"{SECONDS}s", "watch", "--interval", "1s", "--state-dir", tmp_path / "state", "--json", written,
                              stderr=stderr)
        try:
            look()
            with attack(home) as pid:
                text = f"no answer within {SECONDS}s: {why.format(pid=pid, directory=home)}; it is left out until it answers\n"
                until("the message", lambda: text in log.read_text())
                answers = [look() for _ in range(3)]
                notes = [note for note in [*answers[-1]["notes"], *(note for row in answers[-1]["instances"] for note in row["notes"])]]
                assert any("it does not answer" in note for note in notes), notes
                assert log.read_text().count("no answer") == 1
            until("its return", lambda: "answers again" in log.read_text())
            assert not any("does not answer" in note for note in look()["notes"])
        finally:
            begun = time.monotonic()
            watch.terminate()
            assert watch.wait(10) == OK and time.monotonic() - begun < 4


def test_watch_ends_while_a_read_hangs(home, tmp_path):
    with locked_process(home):
        watch = sidecar.start("watch", "--state-dir", tmp_path / "state")
        child = sidecar.reader(watch)
        until("the read", lambda: status(child)["State"].startswith("D"))
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(5) == OK
        until("the end of the child", lambda: not Path(f"/proc/{child}").exists())


def test_systemd_is_told(tmp_path):
    """The protocol of sd_notify(3): that it is ready, and from time to time that it goes on."""
    address = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(address))
        listener.settimeout(10)
        environment = {**os.environ, "NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "400000"}
        watch = sidecar.start("watch", "--state-dir", tmp_path / "state", env=environment)
        try:
            assert "READY=1" in [listener.recv(100).decode() for _ in range(2)]
            begun = time.monotonic()
            assert [listener.recv(100).decode() for _ in range(10)] == ["WATCHDOG=1"] * 10
            assert time.monotonic() - begun < 4
        finally:
            watch.terminate()
            assert watch.wait(10) == OK


def test_the_caller_may_ignore_its_children():
    """Then a child would be gone without an exit status."""
    expected = sidecar.run("check")
    assert sidecar.run("check", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)).status == expected.status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_both_processes(home, number):
    """The caller sees by which signal, as of one process."""
    with silent_include(home):
        status = sidecar.start("status")
        child = sidecar.reader(status)
        status.send_signal(number)
        status.wait(10)
        assert status.returncode in (-number, UNKNOWN)
    until("the end of the child", lambda: not Path(f"/proc/{child}").exists())
