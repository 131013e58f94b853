"""The program that the asker of a preflight runs: both end with whoever waits for them, leave nothing, and get nothing of ours."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.asker import askers
from harness.cluster import Cluster, rows
from harness.kernel import open_files
from harness.poll import until
from harness.processes import alive, children, same_open_file, status

pytestmark = pytest.mark.own_servers


@pytest.fixture
def server(shared_server_without_pools) -> Iterator[Cluster]:
    """The shared server, in working order again after the test."""
    yield shared_server_without_pools.server
    shared_server_without_pools.restore()


def preflight(server: Cluster) -> dict:
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    return row


@pytest.fixture
def stuck(shared_server_without_pools, server) -> Iterator[Path]:
    """A library whose loading never ends, so that the child does not."""
    library = server.root / "stuck.so"
    os.mkfifo(library)
    library.chmod(0o644)
    shared_server_without_pools.configure(shared_preload_libraries=str(library))
    yield library
    library.unlink()


def stubs(server: Cluster) -> list[Path]:
    return list((server.data / "base" / "pgsql_tmp").glob("*hugepages.[0-9]*"))


class PreflightCall:
    """A session that asks for a preflight which does not end, its asker, and the asker's child."""

    def __init__(self, server: Cluster, *before: str) -> None:
        self.server, self.session = server, server.connect()
        for statement in before:
            rows(self.session, statement)
        self.backend = self.session.info.backend_pid
        self.files = open_files(self.backend)
        self.error: BaseException | None = None
        others = set(askers(server))
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        [self.asker] = until("the asker", lambda: set(askers(server)) - others)
        self.child = until("the child to run", self._stuck_child)

    def _stuck_child(self) -> int | None:
        """It has written its lock file and comes to the library."""
        for child in children(self.asker):
            place = Path(f"/proc/{child}/cwd").readlink()
            # Before it executes the program, it stands where the server does.
            if place.parent.name == "pgsql_tmp" and (place / "postmaster.pid").exists():
                return child
        return None

    def _ask(self) -> None:
        try:
            self.rows = rows(self.session, "SELECT * FROM hugepage_preflight()")
        except psycopg2.Error as error:
            self.error = error

    def end(self) -> BaseException | None:
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.error

    def await_end_of_both(self) -> None:
        """Nobody waits for them; they end at once."""
        until("the asker and the child to end", lambda: not alive(self.asker) and not alive(self.child), seconds=5)


def test_cancel_ends_the_child(server, stuck):
    call = PreflightCall(server)
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    assert isinstance(call.end(), psycopg2.errors.QueryCanceled)
    call.await_end_of_both()
    assert not askers(server) and not stubs(server)
    left = set(open_files(call.backend)) - set(call.files)
    assert not [name for name in left if "pgsql_tmp" in name or not name.startswith("/")]
    assert rows(call.session, "SELECT 1 AS alive") == [{"alive": 1}]


def test_statement_timeout_ends_the_child(server, stuck):
    call = PreflightCall(server, "SET statement_timeout = '2s'")
    assert isinstance(call.end(), psycopg2.errors.QueryCanceled)
    call.await_end_of_both()
    assert not stubs(server)


def test_terminated_backend_leaves_nothing(server, stuck):
    call = PreflightCall(server)
    server.sql("SELECT pg_terminate_backend(%s)", call.backend)
    assert isinstance(call.end(), psycopg2.OperationalError)
    assert "terminating connection due to administrator command" in server.log()
    call.await_end_of_both()
    until("the backend to end", lambda: not alive(call.backend))
    assert not stubs(server)


def test_terminated_asker_is_no_answer(server, stuck):
    """Whoever may end processes of the server may end this one: the session is told."""
    call = PreflightCall(server)
    os.kill(call.asker, 15)
    assert call.end() is None
    [row] = call.rows
    assert (row["will_start"], row["lands_in"]) == (None, "unknown") and row["detail"]
    call.await_end_of_both()
    assert not stubs(server)


def test_killed_backend_takes_the_child_along(shared_server_without_pools, server, stuck):
    call = PreflightCall(server)
    os.kill(call.backend, 9)
    assert call.end() is not None
    until("the child to end", lambda: not alive(call.child))
    until("the server to be back", server.ready)
    assert not stubs(server)


def test_stop_of_the_server_takes_the_child_along(shared_server_without_pools, server, stuck):
    call = PreflightCall(server)
    server.stop("immediate")
    assert call.end() is not None
    until("the child to end", lambda: not alive(call.child))
    shared_server_without_pools.configure()
    server.start()
    assert not stubs(server)


def test_child_has_nothing_of_ours(server, stuck):
    """No descriptors; the environment is the postmaster's."""
    call = PreflightCall(server, "SET application_name = 'LD_PRELOAD=evil'")
    descriptors = {fd.name: str(fd.readlink()) for fd in Path(f"/proc/{call.child}/fd").iterdir()}
    assert descriptors.pop("0") == "/dev/null"
    assert "memfd:" in descriptors.pop("2")
    for pid in (call.backend, call.asker):
        of_server = [int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()]
        assert not [name for number, name in descriptors.items() for fd in of_server
                    if same_open_file(call.child, int(number), pid, fd)]
    assert not [name for name in descriptors.values() if name.startswith("socket:")]
    # The postmaster sets some itself, which are not in its file.
    of_server = (b"LC_", b"PGLOCALEDIR=", b"PGSYSCONFDIR=")
    variables, expected = ({variable for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                            if variable and not variable.startswith((b"NOTIFY_SOCKET=", *of_server))}
                           for pid in (call.child, server.postmaster))
    assert variables == expected
    assert b"LC_ALL=C" in Path(f"/proc/{call.child}/environ").read_bytes().split(b"\0")
    assert status(call.child)["PPid"] == str(call.asker) and status(call.asker)["PPid"] == str(server.postmaster)
    [stub] = stubs(server)
    assert stub.stat().st_mode & 0o777 == 0o700
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    call.end()


@pytest.mark.any_major
def test_deadline(server, stuck):
    """It is 10 s."""
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    assert (row["will_start"], row["lands_in"]) == (None, "unknown")
    assert "took longer than" in row["detail"]
    assert not stubs(server)


def test_base_backup_passes_over_the_stub(server, stuck, tmp_path):
    call = PreflightCall(server)
    [stub] = stubs(server)
    target = server.root / "copy"
    server.command("pg_basebackup", "-D", target, "-c", "fast", "-h", server.root, "-U", "postgres")
    assert not list(target.rglob(f"*{stub.name}*"))
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    call.end()


@pytest.mark.parametrize("times", [10, pytest.param(40, marks=pytest.mark.long)])
def test_checkpoints_meanwhile(server, times):
    """pg_control is rewritten all the time while it is copied."""
    writer = server.connect()
    rows(writer, "CREATE TABLE IF NOT EXISTS busy (n int)")
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            rows(writer, "INSERT INTO busy VALUES (1)")
            rows(writer, "CHECKPOINT")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        answers = {preflight(server)["shared_memory"] for _ in range(times)}
    finally:
        stop.set()
        thread.join()
    assert len(answers) == 1 and None not in answers
