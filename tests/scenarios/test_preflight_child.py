"""The program that a preflight runs: it ends with whoever waits for it, leaves nothing, and gets nothing of ours."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.cluster import Cluster, rows
from harness.kernel import open_files
from harness.poll import until
from harness.processes import alive, same_open_file, status


@pytest.fixture
def server(shared_server) -> Iterator[Cluster]:
    """The shared server, in working order again after the test."""
    yield shared_server.server
    shared_server.restore()


def preflight(server: Cluster) -> dict:
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    return row


@pytest.fixture
def stuck(shared_server, server) -> Iterator[Path]:
    """A library whose loading never ends, so that the child does not."""
    library = server.root / "stuck.so"
    os.mkfifo(library)
    library.chmod(0o644)
    shared_server.configure(shared_preload_libraries=str(library))
    yield library
    library.unlink()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def stubs(server: Cluster) -> list[Path]:
    return list((server.data / "base" / "pgsql_tmp").glob("*hugepages.[0-9]*"))


class PreflightCall:
    """A session that asks for a preflight which does not end, and the child that it waits for."""

    def __init__(self, server: Cluster, *before: str, waits: bool = False) -> None:
        """`waits`: for its turn, so that there is no child yet."""
        self.session = server.connect()
        for statement in before:
            rows(self.session, statement)
        self.backend = self.session.info.backend_pid
        self.files = open_files(self.backend)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()
        self.child = None if waits else until("the child to run", self._stuck_child)

    def _stuck_child(self) -> int | None:
        """It has written its lock file and comes to the library."""
        for child in children(self.backend):
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


def test_cancel_ends_the_child(server, stuck):
    call = PreflightCall(server)
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    assert isinstance(call.end(), psycopg2.errors.QueryCanceled)
    assert not children(call.backend)
    assert not stubs(server)
    left = set(open_files(call.backend)) - set(call.files)
    assert not [name for name in left if "pgsql_tmp" in name or not name.startswith("/")]
    assert rows(call.session, "SELECT 1 AS alive") == [{"alive": 1}]


def test_statement_timeout_ends_the_child(server, stuck):
    call = PreflightCall(server, "SET statement_timeout = '2s'")
    assert isinstance(call.end(), psycopg2.errors.QueryCanceled)
    assert not children(call.backend) and not stubs(server)


def test_terminated_backend_leaves_nothing(server, stuck):
    call = PreflightCall(server)
    server.sql("SELECT pg_terminate_backend(%s)", call.backend)
    assert isinstance(call.end(), psycopg2.OperationalError)
    assert "terminating connection due to administrator command" in server.log()
    until("the backend and the child to end", lambda: not alive(call.backend) and not alive(call.child))
    assert not stubs(server)


def test_killed_backend_takes_the_child_along(shared_server, server, stuck):
    call = PreflightCall(server)
    os.kill(call.backend, 9)
    assert call.end() is not None
    until("the child to end", lambda: not alive(call.child))
    until("the server to be back", server.ready)
    assert not stubs(server)


def test_stop_of_the_server_takes_the_child_along(shared_server, server, stuck):
    call = PreflightCall(server)
    server.stop("immediate")
    assert call.end() is not None
    until("the child to end", lambda: not alive(call.child))
    shared_server.configure()
    server.start()
    assert not stubs(server)


def test_child_has_nothing_of_ours(server, stuck):
    """No descriptors; the environment is the postmaster's."""
    call = PreflightCall(server, "SET application_name = 'LD_PRELOAD=evil'")
    descriptors = {fd.name: str(fd.readlink()) for fd in Path(f"/proc/{call.child}/fd").iterdir()}
    assert descriptors.pop("0") == "/dev/null"
    assert "memfd:" in descriptors.pop("2")
    backend_fds = [int(fd.name) for fd in Path(f"/proc/{call.backend}/fd").iterdir()]
    assert not [name for number, name in descriptors.items() for backend_fd in backend_fds
                if same_open_file(call.child, int(number), call.backend, backend_fd)]
    assert not [name for name in descriptors.values() if name.startswith("socket:")]
    variables, expected = ({variable for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                            if variable and not variable.startswith((b"LC_ALL=", b"NOTIFY_SOCKET="))}
                           for pid in (call.child, server.postmaster))
    assert variables == expected
    assert b"LC_ALL=C" in Path(f"/proc/{call.child}/environ").read_bytes().split(b"\0")
    assert status(call.child)["PPid"] == str(call.backend)
    [stub] = stubs(server)
    assert stub.stat().st_mode & 0o777 == 0o700
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    call.end()


def test_two_at_a_time(server, stuck):
    """Others wait for their turn, which a cancel ends; a killed session gives its turn to the next."""
    running = [PreflightCall(server), PreflightCall(server)]
    waiting = [PreflightCall(server, waits=True) for _ in range(4)]
    waits = "SELECT count(*) AS sessions FROM pg_stat_activity WHERE wait_event IN ('Extension', 'HugepagesServerProgram') AND query LIKE '%%preflight%%'"
    until("all to wait", lambda: server.sql(waits)[0]["sessions"] >= len(running + waiting))
    assert not [call for call in waiting if children(call.backend)]
    assert len(stubs(server)) == len(running)
    server.sql("SELECT pg_cancel_backend(%s)", waiting[0].backend)
    assert isinstance(waiting[0].end(), psycopg2.errors.QueryCanceled)
    server.sql("SELECT pg_terminate_backend(%s)", running[0].backend)
    running[0].end()
    until("one more to run", lambda: any(children(call.backend) for call in waiting[1:]))
    assert len(stubs(server)) <= len(running)
    for call in [running[1], *waiting[1:]]:
        server.sql("SELECT pg_cancel_backend(%s)", call.backend)
        call.end()
    assert not stubs(server)


@pytest.mark.any_major
def test_no_turn_until_the_deadline(server, stuck):
    for _ in range(2):
        PreflightCall(server, "SET statement_timeout = '20s'")
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    assert (row["will_start"], row["lands_in"]) == (None, "unknown") and "longer than 10 s" in row["detail"]


@pytest.mark.any_major
def test_deadline(server, stuck):
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    assert (row["will_start"], row["lands_in"]) == (None, "unknown")
    assert "took longer than" in row["detail"]
    assert not stubs(server)


def test_leftovers_of_the_killed_are_removed(server):
    leftover = server.data / "base" / "pgsql_tmp" / "pgsql_tmp_hugepages.999999999"
    leftover.mkdir(parents=True, exist_ok=True)
    for path in (leftover.parent, leftover):
        os.chown(path, server.data.stat().st_uid, server.data.stat().st_gid)
    assert preflight(server)["will_start"]
    assert not stubs(server)


def test_base_backup_passes_over_the_stub(server, stuck, tmp_path):
    call = PreflightCall(server)
    [stub] = stubs(server)
    target = server.root / "copy"
    server.command("pg_basebackup", "-D", target, "-c", "fast", "-h", server.root, "-U", "postgres")
    assert not list(target.rglob(f"*{stub.name}*"))
    server.sql("SELECT pg_cancel_backend(%s)", call.backend)
    call.end()


def test_checkpoints_meanwhile(server):
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
        answers = {preflight(server)["shared_memory"] for _ in range(40)}
    finally:
        stop.set()
        thread.join()
    assert len(answers) == 1 and None not in answers
