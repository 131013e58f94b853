"""The OS user of a stopped cluster attacks root, who runs `size`: its files name the program that root starts."""

import os
import pwd
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import sidecar

pytestmark = pytest.mark.any_major

SYSTEM_PROGRAMS = Path("/usr/local/lib")
"""A directory of root, in which no other user can write."""
# 1793 pages of 8 kB, of which majors up to 18 count one too many, are 7 of 2 MB.


@pytest.fixture
def place(root) -> Iterator[Path]:
    """A directory that only root can write to, as are all above it."""
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-attack-", dir=SYSTEM_PROGRAMS))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def cluster(place) -> Callable[..., Path]:
    """A data directory of `user`, whose last start was of a program with this script, owned by `owner`."""
    def cluster(script: str, user: str = "postgres", owner: str | None = None, group: int | None = None) -> Path:
        account = pwd.getpwnam(user)
        data, programs = place / "data", place / "bin"
        for directory in (data, programs):
            directory.mkdir()
        program = programs / "postgres"
        program.write_text("#!/bin/sh\n" + textwrap.dedent(script))
        program.chmod(0o755)
        for name, text in {"PG_VERSION": "15\n", "postgresql.conf": "shared_buffers = 16MB\n",
                           "postmaster.opts": f'{program} "-D" "{data}"\n'}.items():
            (data / name).write_text(text)
        for path in (data, *data.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid if group is None else group)
        data.chmod(0o700)
        if owner:
            for path in (programs, program):
                os.chown(path, pwd.getpwnam(owner).pw_uid, -1)
        return data
    return cluster


def ask(data: Path, seconds: float = 15) -> dict:
    """Root's look at it: the need of the cluster, or why it is unknown."""
    begun = time.monotonic()
    answer = sidecar.run("size", "--format", "json", "--state-dir", data.parent, "--postgresql-data", data, seconds=seconds + 30)
    assert time.monotonic() - begun < seconds, answer
    out = answer.json()
    entry, = (one for one in [*(need for pool in out["pools"] for need in pool["needs"]), *out["not_counted"]]
              if one["instance"] == str(data))
    return entry


def report(data: Path) -> Path:
    """A file that the cluster's user can write."""
    path = data / "report"
    path.touch()
    account = data.stat()
    os.chown(path, account.st_uid, account.st_gid)
    return path


def test_it_has_nothing_of_root(cluster, place):
    """Not its groups, session, terminal, environment or directory, although the data directory is of group 0."""
    # It may start no process, so these are all commands of the shell itself.
    data = cluster("""
        exec 3> "$2/report"
        pwd >&3; export -p >&3
        for file in status stat; do while read line; do echo "$line" >&3; done < /proc/$$/$file; done
        echo 1793
    """, group=0)
    report_file = report(data)
    os.environ["SECRET_OF_ROOT"] = "x"
    try:
        assert ask(data)["pages"] == 7
    finally:
        del os.environ["SECRET_OF_ROOT"]
    account = pwd.getpwnam("postgres")
    text = report_file.read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == {str(account.pw_uid)} and set(status["Gid"].split()) == {str(account.pw_gid)}
    assert "Groups:" in text.splitlines() and status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == 0
    pid, _name, _state, _parent, group, session, terminal, *_ = text.splitlines()[-1].split()
    assert (group, session, terminal) == (pid, pid, "0")
    assert text.startswith("/\n") and "SECRET_OF_ROOT" not in text and "export LC_ALL='C'" in text


@pytest.mark.parametrize("owner", ["nobody", "postgres"])
def test_a_program_that_others_own_is_not_run(cluster, place, owner):
    """That of a third user, and one of the owner's that others can write to."""
    data = cluster(": > \"$2/ran\"; echo 1793", owner=owner)
    if owner == "postgres":
        assert ask(data)["pages"] == 7
        (data / "ran").unlink()
        (place / "bin").chmod(0o777)
    why = ask(data)["why"]
    assert "is not run" in why and not (data / "ran").exists()


def test_another_users_cluster_is_not_run(cluster, place):
    """A configuration of postgres that names the data directory of nobody, and a library that nobody's server would load."""
    data = cluster(": > \"$2/ran\"; echo 1793", user="nobody")
    config = place / "postgresql.conf"
    config.write_text(f"data_directory = '{data}'\nshared_preload_libraries = '/tmp/evil'\n")
    os.chown(config, pwd.getpwnam("postgres").pw_uid, -1)
    script = 'mount -t tmpfs -o mode=755 none /etc/postgresql && mkdir -p /etc/postgresql/15/main && cp -p "$1" /etc/postgresql/15/main && shift && exec "$@"'
    Path("/etc/postgresql").mkdir(exist_ok=True)
    answer = sidecar.run("size", "--format", "json", "--state-dir", place, through=["unshare", "--mount", "sh", "-c", script, "sh", config])
    why = {one["instance"]: one["why"] for one in answer.json()["not_counted"]}
    # As the owner of the data directory, nothing of the configuration is read; the program would not be run either.
    assert any(reason in why[str(data)] for reason in ("its configuration could not be read", "belongs to user"))
    assert not (data / "ran").exists()


def test_nothing_stays_behind(cluster):
    """A process in the background, which would keep the pipe open, cannot even start."""
    data = cluster("sleep 300 & echo 1793")
    ask(data, seconds=10)
    assert not any((path / "cmdline").read_bytes().startswith(b"sleep\0300\0") for path in Path("/proc").glob("[0-9]*")
                   if (path / "cmdline").exists())


def test_endless_output_is_cut(cluster):
    """64 KiB are kept; root's peak of memory stays far below what the program prints."""
    data = cluster("while :; do echo 01234567890123456789012345678901234567890123456789; done")
    begun = time.monotonic()
    script = 'ulimit -v 500000; exec "$@"'
    answer = sidecar.run("size", "--format", "json", "--state-dir", data.parent, "--postgresql-data", data,
                         through=["sh", "-c", script, "sh"])
    assert "postgres -C failed" in {one["instance"]: one["why"] for one in answer.json()["not_counted"]}[str(data)]
    assert time.monotonic() - begun < 15


def test_a_program_that_sleeps_is_ended(cluster):
    data = cluster("exec sleep 300")
    assert "did not end within 20 s" in ask(data, seconds=35)["why"]
