"""Memory ends while the server's own files or the host's are large: a statement gets an error, the worker may end in order, and the server goes
on. What ends a process by a signal restarts the whole server.
"""

from collections.abc import Callable
from contextlib import closing

import psycopg2
import pytest

from harness.cluster import SUPERUSER, Cluster, rows
from harness.own_etc import start_with_etc
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_worker
from harness.processes import alive, limit_address_space, status_bytes, waits_so_far
from harness.status import create_extension
from harness.units import KB, MB

pytestmark = pytest.mark.own_servers

RESERVE = 8 * MB
"""What a call maps before it begins (memory.rs)."""

BEHIND = [RESERVE + step * 64 * KB for step in range(-2, 49)]
"""Room that ends a little before the reserve, in it, or up to 3 MB behind it."""

OF_WORKER = [step * 32 * KB for step in range(-4, 17)]
"""The worker's peak less 128 kB up to 512 kB more."""

NO_MEMORY = "53200"

MANY = {f"sysctl.d/of-a-test-{number}.conf": "vm.nr_hugepages = 3\n" * 100 for number in range(150)}
"""Files that the next boot reads."""


def add_settings(server: Cluster, begin: int, lines: int) -> int:
    """Append custom settings to postgresql.conf; the number of the next one."""
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.writelines(f"app.x{number} = 'y'\n" for number in range(begin, begin + lines))
    return begin + lines


def assert_lives(server: Cluster, bystander) -> None:
    """No process has ended by a signal, and no message is a structure of the program."""
    assert "PANIC" not in server.log() and "terminated by signal" not in server.log(), server.log()[-2000:]
    assert rows(bystander, "SELECT 1 AS alive") == [{"alive": 1}]
    assert "ErrorReport" not in server.log()


def look_with_room(server: Cluster, room: int, user: str) -> str | None:
    """What a session gets that has so much room; None is a row."""
    session = server.connect(user=user)
    try:
        rows(session, "SELECT hugepage_library_version()")
        pid = session.info.backend_pid
        limit_address_space(pid, status_bytes(pid, "VmSize") + room, SUPERUSER)
        assert len(rows(session, "SELECT * FROM hugepage_status")) == 1
        return None
    except psycopg2.Error as error:
        assert error.pgcode, error
        return error.pgcode
    finally:
        session.close()


def assert_sessions_live(server: Cluster) -> None:
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    bystander = server.connect()
    codes = [look_with_room(server, room, "watcher") for room in BEHIND]
    assert_lives(server, bystander)
    assert {None, NO_MEMORY} >= set(codes) and None in codes, codes


@pytest.mark.parametrize("call", ["hugepage_library_version({})", "hugepage_preflight({})", "hugepage_preflight(huge_page_size => {})"])
def test_a_long_argument(new_cluster, root, call):
    """Of any length, by whoever may call: copies of it would take more than the reserve."""
    server = create_extension(new_cluster(huge_pages=False, autovacuum=False).start())
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    bystander = server.connect()
    codes, long = [], "repeat('9.', 15000000)"
    for room in range(60, 220, 20):
        with closing(server.connect(user="watcher")) as session:
            rows(session, "SELECT hugepage_library_version()")
            pid = session.info.backend_pid
            limit_address_space(pid, status_bytes(pid, "VmSize") + room * MB, SUPERUSER)
            try:
                rows(session, f"SELECT * FROM {call.format(long)}")
            except psycopg2.Error as error:
                codes.append(error.pgcode)
    assert_lives(server, bystander)
    assert set(codes) & {"22023", "55000"} and set(codes) <= {"22023", "55000", NO_MEMORY}, codes


@pytest.mark.parametrize("lines", [60, 2000])
@pytest.mark.parametrize("reloaded", [False, True], ids=["not reloaded", "reloaded"])
def test_sessions_with_many_settings(new_cluster, root, lines, reloaded):
    server = create_extension(new_cluster(huge_pages=False, autovacuum=False).start())
    add_settings(server, 0, lines)
    if reloaded:
        server.sql("SELECT pg_reload_conf()")
    assert_sessions_live(server)


@pytest.mark.any_major
def test_sessions_with_many_files_of_sysctl(new_cluster, root):
    server = new_cluster(huge_pages=False, autovacuum=False)
    start_with_etc(server, MANY)
    assert_sessions_live(create_extension(server))


@pytest.mark.any_major
def test_worker_with_many_files_of_sysctl(new_cluster, root):
    server = new_cluster(huge_pages=False, autovacuum=False, **WATCHED)
    start_with_etc(server, MANY)
    assert_worker_ends_in_order(create_extension(server), lambda number: number)


@pytest.mark.parametrize("lines", [60, 2000])
def test_worker_with_many_settings(new_cluster, root, lines):
    server = create_extension(new_cluster(huge_pages=False, autovacuum=False, **PRELOADED).start())
    # Many once, and then a few each time: the server sorts all of them in at each reload.
    assert_worker_ends_in_order(server, lambda number: add_settings(server, number, 60 if number else lines))


def assert_worker_ends_in_order(server: Cluster, change: Callable[[int], int]) -> None:
    """Reload again and again, each time with a little more room; a worker that has ended is started by a restart of the server."""
    number = 0

    def started() -> tuple[int, int]:
        pid = await_worker(server)
        before = waits_so_far(pid)
        server.sql("SELECT pg_reload_conf()")
        rounds(pid, before)
        return pid, status_bytes(pid, "VmPeak")

    def rounds(pid: int, before: int) -> None:
        until("the worker to have handled it", lambda: not alive(pid) or _waits(pid) > before)

    pid, peak = started()
    for more in OF_WORKER:
        if not alive(pid):
            until("an end of the worker, and not of the server", server.ready)
            assert "PANIC" not in server.log() and "terminated by signal" not in server.log(), server.log()[-2000:]
            server.restart()
            pid, peak = started()
        limit_address_space(pid, peak + more, SUPERUSER)
        before = waits_so_far(pid)
        number = change(number)
        server.sql("SELECT pg_reload_conf()")
        rounds(pid, before)
    assert_lives(server, server.connect())
    assert server.sql("SELECT generation FROM hugepage_status") == [{"generation": 1}]


def _waits(pid: int) -> int:
    try:
        return waits_so_far(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0
