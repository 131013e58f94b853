"""Root without root's powers: the sets of the systemd unit are enough for every output that docs recommend, the program keeps
no more than docs/security.md lists, and writes nowhere but where the command line says."""

import grp
import os
import pwd
import re
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, systemd_unit
from harness.attacker import USER
from harness.poll import until
from harness.units import MB

pytestmark = pytest.mark.any_major

DOCUMENT = Path(__file__).parents[2] / "docs/security.md"
ORACLE_GROUP = "daemon"
"""Stands in for oinstall."""
CAPABILITIES = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7,
                "CAP_SYS_PTRACE": 19}


@pytest.fixture
def place(root) -> Iterator[Path]:
    """A directory of root's, with the directories that the unit and docs/oracle.md make."""
    place = Path(f"/tmp/pg_hugepages-unit-{os.getpid()}")
    place.mkdir(mode=0o755)
    for name in ("state", "metrics", "server"):
        (place / name).mkdir()
        (place / name).chmod(0o755)
    os.chown(place / "server", pwd.getpwnam("postgres").pw_uid, -1)
    (place / "state").chmod(int(*systemd_unit.values("StateDirectoryMode"), 8))
    (place / "state/oracle").mkdir()
    (place / "state/oracle").chmod(0o750)
    os.chown(place / "state/oracle", 0, grp.getgrnam(ORACLE_GROUP).gr_gid)
    yield place
    subprocess.run(["rm", "-rf", place], check=True)


@contextmanager
def server(place: Path) -> Iterator[subprocess.Popen]:
    """A server that counts: it runs as postgres."""
    with fake(place / "server", size=64 * MB, uid=pwd.getpwnam("postgres").pw_uid) as process:
        yield process


def outputs(place: Path) -> list[str | Path]:
    return ["--state-dir", place / "state", "--json", place / "metrics/status.json", "--textfile", place / "metrics/hugepages.prom",
            "--oracle-dir", place / "state/oracle"]


def owner_and_mode(path: Path) -> tuple[str, str, str]:
    found = path.stat()
    return pwd.getpwuid(found.st_uid).pw_name, grp.getgrgid(found.st_gid).gr_name, f"{stat.S_IMODE(found.st_mode):04o}"


def test_the_units_sets_are_enough_for_every_output(place):
    with server(place):
        answer = sidecar.run("watch", "--once", *outputs(place), through=systemd_unit.through())
    assert answer.status in (sidecar.OK, sidecar.WARNING, sidecar.CRITICAL), answer
    assert "could not" not in answer.stderr and "WARNING:  could" not in answer.stderr, answer.stderr
    oracle = sorted((place / "state/oracle").glob("*.dat"))
    assert len(oracle) == 4
    for path in oracle:
        assert owner_and_mode(path) == ("root", ORACLE_GROUP, "0640")
        # As a server process of Oracle's would.
        reader = ["setpriv", "--reuid=nobody", f"--regid={ORACLE_GROUP}", "--clear-groups", "cat", path]
        assert subprocess.run(reader, capture_output=True, check=True).stdout == path.read_bytes() != b""
    for name in ("status.json", "hugepages.prom"):
        assert owner_and_mode(place / "metrics" / name) == ("root", "root", "0644")
        assert (place / "metrics" / name).stat().st_size > 100
    [history] = (place / "state").glob(f"postgresql-*{place.name}-server.*.history")
    assert owner_and_mode(history) == ("root", "root", "0640") and str(place / "server") in history.read_text()


def test_oracles_files_need_the_third_capability(place):
    answer = sidecar.run("watch", "--once", *outputs(place), through=systemd_unit.through(without="CAP_CHOWN"))
    assert answer.status == sidecar.UNKNOWN and "could not write" in answer.stderr
    assert not list((place / "state/oracle").glob("*.dat"))


def documented(who: str) -> set[str]:
    """The capabilities of the row `who` of the table in docs/security.md."""
    rows = [line.strip("| ").split(" | ") for line in DOCUMENT.read_text().splitlines() if re.match(r"\| .*CAP_\w+", line)]
    [capabilities] = [row[1] for row in rows if who in row[0]]
    return set(re.findall(r"CAP_\w+", capabilities))


def bits(names: set[str]) -> int:
    return sum(1 << CAPABILITIES[name] for name in names)


@contextmanager
def watching(place: Path, *arguments: str | Path) -> Iterator[subprocess.Popen]:
    process = sidecar.start("watch", "--interval", "1s", "--state-dir", place / "state", "--json", place / "metrics/status.json", *arguments)
    try:
        until("watch writes its file", (place / "metrics/status.json").exists)
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("with_oracle", [False, True])
def test_watch_keeps_what_is_documented(place, with_oracle):
    effective, permitted = documented("in effect"), documented("until it has become")
    besides = documented("watch --oracle-dir") | documented("a command that writes files")
    with watching(place, *(["--oracle-dir", place / "state/oracle"] if with_oracle else [])) as process:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    status = dict(line.split(":\t") for line in lines if ":\t" in line)
    found = {name: int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")}
    permitted = bits(effective | permitted | (besides if with_oracle else documented("a command that writes files")))
    assert found == {"CapEff": bits(effective), "CapPrm": permitted, "CapBnd": permitted, "CapInh": 0, "CapAmb": 0}
    assert status["NoNewPrivs"] == "1"


def test_the_unit_grants_what_is_documented():
    rows = ("in effect", "until it has become", "a command that writes files", "watch --oracle-dir")
    assert set(systemd_unit.capabilities()) == set.union(*map(documented, rows))


def test_a_directory_that_was_exchanged_gets_nothing(place):
    """The command line names a directory that becomes a user's, who has a link to another directory in its place."""
    owned, outside = place / "owned", place / "outside"
    for directory in (owned, owned / "named", outside):
        directory.mkdir()
    target = owned / "named/metrics.prom"
    with watching(place, "--textfile", target) as process:
        until("the first file", target.exists)
        os.chown(owned, USER, USER)
        subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "sh", "-c",
                        f"mv {owned}/named {owned}/moved && ln -s {outside} {owned}/named"], check=True)
        for _ in range(2):
            written = (place / "metrics/status.json").stat().st_mtime_ns
            until("the next survey", lambda: (place / "metrics/status.json").stat().st_mtime_ns > written)
        process.terminate()
        _, log = process.communicate(timeout=10)
    assert list(outside.iterdir()) == [], "nothing is written where the command line did not name it"
    assert f"could not write {target}: nothing is written below" in log
