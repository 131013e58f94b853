"""The sidecar on hosts that are not as they should be: a clear message, never a crash, and never for long."""

import json
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar
from harness.oracle import Instance, SysV, alert_log
from harness.sidecar import CRITICAL, OK, UNKNOWN, WARNING, static_binary
from harness.units import GB, MB

pytestmark = pytest.mark.any_major

ANSWERS = (OK, WARNING, CRITICAL, UNKNOWN)


def told(directory: Path, sid: str, **options: Any) -> dict[str, Any]:
    return row_of(sidecar.run("status", "--format", "json", "--state-dir", directory, **options), sid)


def row_of(answer: sidecar.Answer, sid: str) -> dict[str, Any]:
    assert answer.stderr == "" and answer.status in ANSWERS, answer
    row, = (row for row in answer.json()["instances"] if row["name"] == sid)
    return row


def live(instance: Instance) -> bytes:
    return alert_log.of_19(instance.pmon, 16, 15, 512, setting="ONLY").encode()


@pytest.mark.parametrize("case", ["empty", "garbage", "one-line", "cut", "latin-1", "utf-16", "zeros", "directory", "pipe",
                                  "device"])
def test_damaged_alert_logs(oracle, tmp_path, case):
    """Whatever stands in the log, the memory is what it is; a log that still has the start is used."""
    instance = oracle.instance("TEST1", SysV(4 * MB))
    whole, log = live(instance), instance.alert_log
    readable = case in ("latin-1", "garbage")
    contents = {"empty": b"", "garbage": os.urandom(3 * MB) + b"\n" + whole + os.urandom(MB), "one-line": b"x" * 20 * MB,
                "cut": whole[:whole.index(b"2048K")], "latin-1": whole + "Größe des Puffers\n".encode("latin-1") * 1000,
                "utf-16": whole.decode().encode("utf-16"), "zeros": b"\0" * MB}
    if case in contents:
        log.write_bytes(contents[case])
    elif case == "directory":
        log.mkdir()
    elif case == "pipe":
        os.mkfifo(log)
    else:
        log.symlink_to("/dev/zero")
    row = told(tmp_path, "TEST1", seconds=20)
    assert (row["landed_in"], row["shared_memory"]) == ("base", 4 * MB)
    assert row["use_large_pages"] == ("ONLY" if readable else None)


@pytest.mark.parametrize("where", ["first", "last", "nowhere"])
def test_a_log_of_a_gigabyte(oracle, tmp_path, where):
    """The last 64 MB of it are read, in little memory: a start before them is unknown."""
    instance = oracle.instance("TEST1", SysV(4 * MB))
    filler = b"Thread 1 advanced to log sequence 4711 (LGWR switch)\n" * 20_000
    with open(instance.alert_log, "wb") as log:
        if where == "first":
            log.write(live(instance))
        for _ in range(GB // len(filler)):
            log.write(filler)
        if where == "last":
            log.write(live(instance))
        assert log.tell() > GB - MB
    answer, used = sidecar.run_measured("status", "--format", "json", "--state-dir", tmp_path)
    row = row_of(answer, "TEST1")
    assert row["use_large_pages"] == ("ONLY" if where == "last" else None)
    assert used.peak_memory < 20 * MB


def test_cyclic_links(oracle, tmp_path):
    """Links in diag lead in circles and nowhere."""
    instance = oracle.instance("TEST1", SysV(4 * MB))
    rdbms = oracle.base / "diag" / "rdbms"
    rdbms.mkdir(parents=True)
    (rdbms / "circle").symlink_to(rdbms)
    (rdbms / "self").symlink_to("self")
    (rdbms / "up").symlink_to("..")
    (rdbms / "nowhere").symlink_to("/nonexistent/directory")
    instance.alert_log.symlink_to(instance.alert_log.name)
    assert told(tmp_path, "TEST1")["landed_in"] == "base"
    instance.alert_log.unlink()
    instance.alert_log.write_bytes(live(instance))
    assert told(tmp_path, "TEST1")["use_large_pages"] == "ONLY"


STORM = """
import os, signal
while True:
    pids = []
    for number in range(40):
        pid = os.fork()
        if pid == 0:
            name = [b"ora_pmon_S%d", b"oracleLIVE", b"postgres: storm", b"/usr/lib/postgresql/15/bin/postgres"][number % 4]
            os.execv("/bin/sleep", [name % number if b"%" in name else name, "0.002"])
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
"""


def test_processes_that_vanish_meanwhile(oracle, tmp_path):
    """Processes with the names of servers come and go all the time: what stays is told, and no answer is an error."""
    oracle.instance("LIVE", SysV(4 * MB), servers=4)
    storm = subprocess.Popen([sys.executable, "-c", STORM], stderr=subprocess.DEVNULL)
    try:
        for _ in range(50):
            row = told(tmp_path, "LIVE")
            assert (row["landed_in"], row["shared_memory"]) == ("base", 4 * MB)
            assert row["processes"] >= 5
        assert sidecar.run("watch", "--once", "--state-dir", tmp_path).status in ANSWERS
        assert sidecar.run("size", "--state-dir", tmp_path, "--format", "json").status in ANSWERS
    finally:
        storm.kill()
        storm.wait()


def test_in_a_chroot_with_nothing_but_proc_and_sys(oracle, tmp_path):
    """The static program alone says there what it says outside."""
    oracle.instance("TEST1", SysV(4 * MB), servers=1)
    room = tmp_path / "room"
    room.mkdir()
    shutil.copy(static_binary(), room / "hugepage-sidecar")
    script = ('mkdir "$1/proc" "$1/sys" && mount --rbind /proc "$1/proc" && mount --rbind /sys "$1/sys" && '
              'exec chroot "$1" /hugepage-sidecar status --format json --state-dir /none')
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", room], capture_output=True, text=True, timeout=60)
    assert (done.returncode in ANSWERS, done.stderr) == (True, "")
    row, = (row for row in json.loads(done.stdout)["instances"] if row["name"] == "TEST1")
    outside = told(tmp_path, "TEST1")
    for name in ("landed_in", "shared_memory", "by_page_size", "pages_needed", "processes", "page_tables_total", "memlock"):
        assert row[name] == outside[name], name


def test_an_old_log_is_not_live(oracle, tmp_path):
    """A gigabyte or not: the block of another start is not this one's, also if its process had the same id."""
    instance = oracle.instance("TEST1", SysV(4 * MB))
    for text in (alert_log.of_11_2(instance.pmon, 32 * MB, 32 * MB, setting="ONLY", age=timedelta(days=3)),
                 alert_log.of_19(instance.pmon, 16, 16, 3, setting="ONLY", age=timedelta(hours=2))):
        instance.alert_log.write_text(text)
        row = told(tmp_path, "TEST1")
        assert (row["use_large_pages"], row["version"], row["landed_in"]) == (None, None, "base")
