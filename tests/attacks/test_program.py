"""The OS user of a stopped cluster attacks root, who runs `size`: its files say what root is to start, and how."""

import ctypes
import os
import pwd
import shutil
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.traces import made_directory

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
def cluster(place, new_cluster) -> Callable[..., Cluster]:
    """A stopped cluster whose package has a program with this script, owned by `owner`; `{place}` is root's directory."""
    def cluster(script: str, owner: str = "root") -> Cluster:
        server = new_cluster(shared_buffers="16MB")
        programs = place / "bin"
        programs.mkdir()
        for name, text in {"postgres": script.replace("{place}", str(place)), "pg_resetwal": 'echo 1 > "$3/global/pg_control"'}.items():
            (programs / name).write_text("#!/bin/sh\n" + textwrap.dedent(text))
            (programs / name).chmod(0o755)
        for path in (programs, *programs.iterdir()):
            os.chown(path, pwd.getpwnam(owner).pw_uid, -1)
        return server
    return cluster


def of_server(path: Path, text: str) -> Path:
    """A file of the servers' user."""
    path.write_text(text)
    account = pwd.getpwnam("postgres")
    os.chown(path, account.pw_uid, account.pw_gid)
    return path


def everybodys(path: Path) -> Path:
    path.touch()
    path.chmod(0o666)
    return path


def ask(data: Path, seconds: float = 15, through=(), named: bool = True, place: Path | None = None) -> dict:
    """Root's look at it: the need of the cluster, or why it is unknown. `named`: by the command line, not by /etc/postgresql.
    `place`: whose programs are in the place of the package's."""
    if place and (place / "bin").exists():
        packaged = f"/usr/lib/postgresql/{(data / 'PG_VERSION').read_text().strip()}/bin"
        through = ["unshare", "--mount", "sh", "-c", f'mount --bind {place}/bin {packaged} && exec "$@"', "sh", *through]
    begun = time.monotonic()
    answer = sidecar.run("size", "--format", "json", "--state-dir", data.parent, *(("--postgresql-data", data) if named else ()),
                         seconds=seconds + 30, through=through)
    assert time.monotonic() - begun < seconds, answer
    out = answer.json()
    entry, = (one for one in [*(need for pool in out["pools"] for need in pool["needs"]), *out["not_counted"]]
              if one["instance"] == str(data))
    return entry


def test_it_has_nothing_of_root(cluster, place):
    """It runs as the owner of the files, who gains nothing by it: not root's session, terminal, environment or directory."""
    # It may start no process, so these are all commands of the shell itself.
    server = cluster("""
        exec 3>> "{place}/report"
        pwd >&3; export -p >&3
        for file in status stat; do while read line; do echo "$line" >&3; done < /proc/$$/$file; done
        echo 1793
    """)
    report = everybodys(place / "report")
    os.environ["SECRET_OF_ROOT"] = "x"
    try:
        assert ask(server.data, place=place)["pages_needed"] == 7
    finally:
        del os.environ["SECRET_OF_ROOT"]
    text = report.read_text()
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    [uid], [gid] = set(status["Uid"].split()), set(status["Gid"].split())
    owner = pwd.getpwnam("postgres")
    assert (int(uid), int(gid)) == (owner.pw_uid, owner.pw_gid)
    assert set(map(int, status["Groups"].split())) == set(os.getgrouplist(owner.pw_name, owner.pw_gid)) and status["NoNewPrivs"] == "1" and int(status["CapEff"], 16) == 0
    pid, _name, _state, _parent, group, session, terminal, *_ = text.splitlines()[-1].split()
    assert (group, session, terminal) == (pid, pid, "0")
    assert text.startswith("/\n") and "SECRET_OF_ROOT" not in text and "export LC_ALL='C'" in text


def test_a_program_that_others_can_change_is_not_run(cluster, place):
    """It would run as the owner of the files, for whom a third user's program is as hostile as for root."""
    server = cluster(": > \"{place}/ran\"; echo 1793", owner="nobody")
    place.chmod(0o777)
    assert "is not run" in ask(server.data, place=place)["reason"] and not (place / "ran").exists()


@pytest.mark.parametrize("where", ["its own file", "a directory that root's file includes"])
def test_a_library_of_the_owners_is_not_loaded(new_cluster, place, where):
    """Whosever file names it: the servers' user could name it where root includes a directory."""
    server = new_cluster(shared_buffers="16MB")
    # A library that is there, beside a name that is not one of the server's own.
    library = of_server(server.root / "evil.so", "")
    line = f"shared_preload_libraries = '{library}'\n"
    if where == "its own file":
        of_server(server.data / "postgresql.auto.conf", line)
        answer = ask(server.data, seconds=60, place=place)
    else:
        included = server.root / "conf.d"
        included.mkdir()
        of_server(included / "evil.conf", line)
        config = place / "postgresql.conf"
        config.write_text(f"shared_buffers = 16MB\ninclude_dir '{included}'\ndata_directory = '{server.data}'\n")
        script = ('mount -t tmpfs -o mode=755 none /etc/postgresql && mkdir -p /etc/postgresql/15/main && '
                  'cp "$1" /etc/postgresql/15/main && shift && exec "$@"')
        (server.data / "postgresql.conf").unlink()
        through = ["unshare", "--mount", "sh", "-c", script, "sh", config]
        with made_directory(Path("/etc/postgresql")):
            answer = ask(server.data, seconds=60, place=place, through=through, named=False)
    assert "evil.so" in answer["reason"], answer


def test_directories_that_change_places(new_cluster, place):
    """RENAME_EXCHANGE of the configuration's directory all the time: it is read by descriptor, once, and no program gets its path."""
    server = new_cluster(shared_buffers="16MB")
    one, other = server.root / "one", server.root / "other"
    for directory, text in ((one, "max_connections = 20\n"), (other, f"shared_preload_libraries = '{server.root}/evil'\n")):
        directory.mkdir()
        of_server(directory / "included.conf", text)
    of_server(server.data / "postgresql.auto.conf", f"include '{one}/included.conf'\n")
    libc, ended = ctypes.CDLL(None), threading.Event()

    def exchange() -> None:
        while not ended.is_set():
            libc.renameat2(-100, str(one).encode(), -100, str(other).encode(), 2)
    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(3):
            # Whichever of the two it reads, nothing of the other gets into it.
            assert "evil" in ask(server.data, seconds=60, place=place).get("reason", "evil")
    finally:
        ended.set()
        thread.join()


def test_nothing_stays_behind(cluster, place):
    """A process in the background, which would keep the pipe open, cannot even start."""
    ask(cluster("sleep 300 & echo 1793").data, seconds=10, place=place)
    assert not any((path / "cmdline").read_bytes().startswith(b"sleep\0300\0") for path in Path("/proc").glob("[0-9]*")
                   if (path / "cmdline").exists())


def test_endless_output_is_cut(cluster, place):
    """64 KiB are kept; root's peak of memory stays far below what the program prints."""
    server = cluster("while :; do echo 01234567890123456789012345678901234567890123456789; done")
    answer = ask(server.data, place=place, through=["sh", "-c", 'ulimit -v 500000; exec "$@"', "sh"])
    assert "reason" in answer, answer


def test_a_program_that_sleeps_is_ended(cluster, place):
    assert "did not end within" in ask(cluster("exec sleep 300").data, seconds=35, place=place)["reason"]


def test_no_program_that_the_servers_files_name_is_run(cluster, place):
    """Nor root's own, in a directory of root's: it may be one of a container's layers, or for another version."""
    server = cluster('echo ran > "{place}/ran"; echo 1793')
    ran = everybodys(place / "ran")
    of_server(server.data / "postmaster.opts", f'{place}/bin/postgres "-D" "{server.data}"\n')
    assert ask(server.data)["pages_needed"] != 7 and ran.read_text() == ""
