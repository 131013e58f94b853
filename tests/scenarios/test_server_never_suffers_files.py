"""Files that do not answer: NFS, autofs and FUSE can make whoever opens a file wait for ever, and no signal ends that wait. Sessions, the worker
and a stop of the server go on. The asker's child alone may wait.
"""

import os
import pwd
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest

from harness import silent_fuse
from harness.asker import askers
from harness.background_statement import BackgroundStatement
from harness.cluster import SUPERUSER, Cluster, Install
from harness.own_etc import SYSCTL, start_with_etc
from harness.own_programs import own_programs
from harness.poll import SLOWER, until
from harness.preloaded import WATCHED, await_rounds, await_worker, worker
from harness.processes import CommandFailed, alive
from harness.status import create_extension

pytestmark = pytest.mark.own_servers

SESSIONS = 12
"""More would not fit beside the superuser's."""

STOP_SECONDS = 3

NAMED: dict[str, Callable[[Path], dict[str, str | Path]]] = {
    "tmpfiles.d": lambda file: {"tmpfiles.d/postgresql-hugepages.conf": file},
    "told": lambda file: {"hugepage-sidecar/next-boot": file},
    "sysctl.d": lambda file: {SYSCTL: file},
}


@contextmanager
def silent_file(server: Cluster, kind: str = "file") -> Iterator[Path]:
    """A file that nobody can read; the server need not have been started."""
    mount = server.root / "silent"
    mount.mkdir()
    with silent_fuse.mounted(mount, pwd.getpwnam(SUPERUSER).pw_uid, kind) as silent:
        yield silent.file


def assert_stops(server: Cluster) -> None:
    """A fast shutdown ends in time."""
    begun = time.monotonic()
    try:
        server.command("pg_ctl", "stop", "-w", "-s", "-D", server.data, "-m", "fast", "-t", "8")
    except CommandFailed as error:
        pytest.fail(f"the server does not stop: {error}")
    assert time.monotonic() - begun < STOP_SECONDS * SLOWER


def assert_goes_on(server: Cluster) -> None:
    """Sessions answer, end by a timeout and by pg_terminate_backend, and the server stops; with its worker, if it has one."""
    looks = [BackgroundStatement(server, "SELECT restart_outlook FROM hugepage_status", "SET statement_timeout = '4s'")
             for _ in range(SESSIONS)]
    for look in looks:
        assert look.end(6) is None
        assert len(look.rows) == 1
        look.session.close()
    pid = worker(server)
    if pid:
        await_rounds(pid, 3)
    waits = BackgroundStatement(server, "SELECT *, pg_sleep(60) FROM hugepage_status")
    server.sql("SELECT pg_terminate_backend(%s)", waits.pid)
    assert isinstance(waits.end(3), psycopg2.OperationalError)
    assert_stops(server)


@pytest.mark.any_major
@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
def test_of_the_next_boot(new_cluster, root, named, settings):
    server = new_cluster(huge_pages=False, max_connections=13 + 3, **settings)
    with silent_file(server) as file:
        create_extension(start_with_etc(server, named(file)))
        assert_goes_on(server)


@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
def test_of_the_configuration(new_cluster, root, settings):
    """No reload: the server itself would wait for the file."""
    server = create_extension(new_cluster(huge_pages=False, max_connections=16, **settings).start())
    with silent_file(server) as file:
        with open(server.data / "postgresql.conf", "a") as conf:
            conf.write(f"include '{file}'\n")
        asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight()", "SET statement_timeout = '2s'")
        assert isinstance(asks.end(4), psycopg2.errors.QueryCanceled)
        assert_goes_on(server)


@pytest.mark.any_major
def test_stop_while_the_worker_begins(new_cluster, root):
    """Its first look is at the start."""
    server = new_cluster(huge_pages=False, **WATCHED)
    with silent_file(server) as file:
        create_extension(start_with_etc(server, NAMED["sysctl.d"](file)))
        await_rounds(await_worker(server), 2)
        assert_stops(server)


def pipe_in_configuration(server: Cluster) -> None:
    """Opening it waits for a writer. The server has not read it."""
    os.mkfifo(server.data / "pipe.conf")
    (server.data / "pipe.conf").chmod(0o644)
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include 'pipe.conf'\n")


@pytest.mark.parametrize("end", ["deadline", "cancel", "terminate"])
def test_a_named_pipe_and_preflight(new_cluster, root, end):
    """The time limit for the program is 10 s."""
    server = create_extension(new_cluster(huge_pages=False).start())
    pipe_in_configuration(server)
    asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight()")
    if end == "deadline":
        assert asks.end(13) is None
        assert (asks.rows[0]["will_start"], asks.rows[0]["lands_in"]) == (None, "unknown") and "longer than 10 s" in asks.rows[0]["detail"]
        assert not askers(server)
    else:
        with pytest.raises(TimeoutError):
            # It has begun to wait, and does not end by itself.
            _ends(asks)
        server.sql(f"SELECT pg_{end}_backend(%s)", asks.pid)
        assert isinstance(asks.end(2), {"cancel": psycopg2.errors.QueryCanceled, "terminate": psycopg2.OperationalError}[end])
    assert_stops(server)


@contextmanager
def silent_program(server: Cluster) -> Iterator[None]:
    """What an automounter does to a program: whoever executes it waits."""
    program = server.install.bindir / "postgres"
    with silent_file(server) as file:
        program.unlink()
        program.symlink_to(file)
        yield


@contextmanager
def silent_alter_system(server: Cluster) -> Iterator[None]:
    """Opening it waits for a writer."""
    file = server.data / "postgresql.auto.conf"
    file.unlink()
    os.mkfifo(file)
    file.chmod(0o644)
    yield


@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("silent", [silent_program, silent_alter_system], ids=["program", "postgresql.auto.conf"])
def test_of_what_a_start_needs(new_cluster, root, silent, settings):
    """The asker ends in time, too, or the server would not stop."""
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-programs-") as place:
        os.chmod(place, 0o755)
        install = own_programs(Install.find(), Path(place))
        server = create_extension(new_cluster(huge_pages=False, max_connections=16, install=install, **settings).start())
        if settings:
            await_worker(server)
        with silent(server):
            server.conf(shared_buffers="140MB")
            asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight()", "SET statement_timeout = '2s'")
            assert isinstance(asks.end(4), psycopg2.errors.QueryCanceled)
            until("askers to end", lambda: settings or not askers(server), seconds=3)
            assert_goes_on(server)


@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("name", ["postmaster.opts", "base/pgsql_tmp"])
def test_of_a_link_in_the_data_directory(new_cluster, root, name, settings):
    """The asker itself looks there, not a child of it: of these names that of temporary files may well lead to another disk."""
    server = create_extension(new_cluster(huge_pages=False, max_connections=16, **settings).start())
    if settings:
        await_worker(server)
    link = server.data / name
    with silent_file(server, "file" if link.is_file() else "directory") as file:
        target = file if link.is_file() else file.parent
        if link.exists():
            link.rename(server.root / link.name)
        link.symlink_to(target)
        server.conf(shared_buffers="140MB")
        asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight()")
        assert asks.end(5) is None
        assert asks.rows[0]["will_start"] is None and name in asks.rows[0]["detail"], asks.rows
        assert_goes_on(server)


def _ends(asks: BackgroundStatement) -> None:
    asks_until = time.monotonic() + SLOWER
    while asks.running():
        if time.monotonic() > asks_until:
            raise TimeoutError
        time.sleep(0.05)


def test_a_history_elsewhere(new_cluster, root):
    """The postmaster opens no directory elsewhere: the setting is none, and the server says so as of any other."""
    server = new_cluster(huge_pages=False, **WATCHED)
    with silent_file(server, "directory") as file:
        server.conf(**{"pg_hugepages.history_directory": file.parent})
        try:
            server.command("pg_ctl", "start", "-w", "-s", "-t", "8", "-D", server.data, "-l", server.log_file)
        except CommandFailed as error:
            pytest.fail(f"the server does not start: {error}")
        warnings = [line for line in server.log().splitlines() if "WARNING" in line and "pg_hugepages.history_directory" in line]
        assert warnings, server.log()
        pid = await_worker(server)
        await_rounds(pid, 2)
        assert alive(pid) and (server.data / "pg_hugepages.history").exists()
        create_extension(server)
        assert_goes_on(server)


@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
def test_a_child_that_does_not_end(new_cluster, root, settings):
    """No signal ends it. It is remembered, so that there is never a second one, and it does not keep the data directory's file system."""
    server = create_extension(new_cluster(huge_pages=False, max_connections=16, **settings).start())
    if settings:
        await_worker(server)
    with silent_file(server) as file:
        with open(server.data / "postgresql.conf", "a") as conf:
            conf.write(f"include '{file}'\n")
        asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight()")
        assert asks.end(30) is None and asks.rows[0]["will_start"] is None
        began = time.monotonic()
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert time.monotonic() - began < 3 * SLOWER, row
        stuck = re.search(r"process (\d+), still waits for a file", row["detail"])
        assert stuck, row
        assert alive(int(stuck[1]))
        assert not Path(f"/proc/{stuck[1]}/cwd").readlink().is_relative_to(server.root)
        assert_goes_on(server)
