"""The asker is a background worker of its own: no session has a child, a cancel ends who waits and who asks, and nothing is left."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest

from harness.background_statement import BackgroundStatement
from harness.cluster import SUPERUSER, Cluster, rows
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer, await_rounds, await_worker, worker
from harness.processes import alive, children, descendants, run
from harness.status import EXTENSION, create_extension, own_notes
from harness.units import KB, MB

pytestmark = pytest.mark.own_servers

ASK = "SELECT * FROM hugepage_preflight()"


def programs(server: Cluster) -> list[int]:
    """The server's program at its question: it runs in a directory of temporary files."""
    def asks(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cwd").readlink().parent.name == "pgsql_tmp"
        except OSError:
            return False
    return [pid for pid in descendants(server.postmaster) if asks(pid)]


def titled(server: Cluster, name: str) -> list[int]:
    """The children of the postmaster that call themselves so."""
    def is_so(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0 ").endswith(name)
        except OSError:
            return False
    return [pid for pid in children(server.postmaster) if is_so(pid)]


@pytest.fixture
def stuck(new_cluster, root) -> Callable[..., Cluster]:
    """Starts a server whose next start would load a library that never ends loading: nobody writes into that pipe."""
    def start(**settings: object) -> Cluster:
        server = create_extension(new_cluster(huge_pages=False, **settings).start())
        if settings:
            # The worker has asked what it asks at a start, and looks again in a minute.
            until("the next boot to be read", lambda: server.sql("SELECT boot_outlook FROM hugepage_status")[0]["boot_outlook"])
            until("the asker to end", lambda: not titled(server, "asker"))
            # At its end the worker looks once more.
            time.sleep(1)
        library = server.root / "stuck.so"
        os.mkfifo(library)
        library.chmod(0o644)
        loaded = settings.get("shared_preload_libraries")
        server.conf(shared_preload_libraries=f"{loaded}, {library}" if loaded else str(library))
        return server
    return start


@pytest.mark.parametrize("settings", [{}, PRELOADED], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("end", ["cancel", "terminate", "timeout"])
def test_nothing_is_left(stuck, settings, end):
    server = stuck(**settings)
    own = worker(server)
    before = set(children(server.postmaster))
    asks = BackgroundStatement(server, ASK, *(["SET statement_timeout = '3s'"] if end == "timeout" else []))
    [program] = until("the program", lambda: programs(server))
    # It belongs to a new child of the postmaster, which is no session.
    assert children(asks.pid) == []
    assert program not in (descendants(own) if own else [])
    if end != "timeout":
        server.sql(f"SELECT pg_{end}_backend(%s)", asks.pid)
    assert isinstance(asks.end(5), psycopg2.OperationalError if end == "terminate" else psycopg2.errors.QueryCanceled)
    until("the program to end", lambda: not alive(program), seconds=3)
    gone = {asks.pid} if end == "terminate" else set()
    until("the asker to end", lambda: set(children(server.postmaster)) - before <= {asks.pid} - gone, seconds=3)
    until("its directory to go", lambda: not list((server.data / "base" / "pgsql_tmp").glob("*hugepages.[0-9]*")), seconds=3)
    assert server.sql("SELECT 1 AS alive") == [{"alive": 1}]
    assert "terminated by signal" not in server.log()


def test_a_stop_ends_the_asker(stuck):
    server = stuck()
    BackgroundStatement(server, ASK)
    [program] = until("the program", lambda: programs(server))
    server.command("pg_ctl", "stop", "-w", "-s", "-D", server.data, "-m", "fast", "-t", "3")
    until("the program to end", lambda: not alive(program), seconds=3)


def test_a_session_that_is_killed(stuck):
    """The asker ends with it, and the server comes back."""
    server = stuck()
    asks = BackgroundStatement(server, ASK)
    [program] = until("the program", lambda: programs(server))
    assert children(asks.pid) == []
    os.kill(asks.pid, 9)
    until("the program to end", lambda: not alive(program))
    until("the server to be back", server.ready)


@pytest.mark.parametrize("settings", [
    {"max_worker_processes": 0, "max_logical_replication_workers": 0},
    {**PRELOADED, "max_worker_processes": 1, "max_logical_replication_workers": 0},
], ids=["none", "taken"])
def test_no_slot(new_cluster, settings):
    server = create_extension(new_cluster(huge_pages=False, **settings).start())
    if "shared_preload_libraries" in settings:
        await_worker(server)
    with pytest.raises(psycopg2.Error) as raised:
        server.sql(ASK)
    assert "could not register background process" in raised.value.diag.message_primary
    assert "max_worker_processes" in raised.value.diag.message_hint
    # Views need none.
    assert len(server.sql("SELECT * FROM hugepage_status")) == 1


def test_a_start_without_a_worker(new_cluster):
    """The message of the start, which the collector could not have, comes with the first view; and no note speaks of a worker that is not there."""
    server = new_cluster(huge_pages=False, **WATCHED, max_worker_processes=0, max_logical_replication_workers=0,
                         logging_collector=True, log_filename="collected.log")
    create_extension(server.start())
    collected = server.data / "log" / "collected.log"
    server.conf(shared_buffers="140MB")
    server.sql("SELECT pg_reload_conf()")
    until("the reload", lambda: "received SIGHUP" in collected.read_text())
    def look() -> bool:
        [row] = server.sql("SELECT * FROM hugepage_status")
        return any("no worker runs" in note for note in own_notes(row))

    until("a look that finds no worker", look)
    [row] = server.sql("SELECT * FROM hugepage_status")
    until("the message of the start", lambda: "shared memory landed in 4 kB pages" in collected.read_text(), seconds=5)
    server.sql("SELECT * FROM hugepage_status")
    assert collected.read_text().count("shared memory landed in 4 kB pages") == 1
    notes = " ".join(own_notes(row))
    assert "the worker has not asked" not in notes
    assert "no worker runs" in notes


def test_a_cancel_does_not_end_the_worker(new_cluster):
    server = create_extension(new_cluster(huge_pages=False, **WATCHED).start())
    pid = await_worker(server)
    for _ in range(3):
        assert server.sql("SELECT pg_cancel_backend(%s) AS sent", pid) == [{"sent": True}]
        await_rounds(pid, 2)
    assert worker(server) == pid
    assert "canceling statement" not in server.log() and "exited with exit code" not in server.log()


def test_a_library_that_is_gone(packages, new_cluster):
    """A package is removed or being updated: what the postmaster has loaded goes on, and logs nothing in eight rounds of the worker."""
    server = create_extension(new_cluster(install=packages, huge_pages=False, **WATCHED).start())
    pid, session = await_worker(server), server.connect()
    await_answer(server)
    assert rows(session, "SELECT will_start FROM hugepage_preflight()") == [{"will_start": True}]
    at = len(server.log())
    Path(packages.ask("pkglibdir"), f"{EXTENSION}.so").unlink()
    server.conf(shared_buffers="140MB")
    # Only the server's program knows what that comes to, and the worker may ask it each second: both it and its library are gone.
    await_rounds(pid, 5)
    assert rows(session, "SELECT will_start FROM hugepage_preflight()") == [{"will_start": False}]
    server.sql("SELECT pg_terminate_backend(%s)", pid)
    await_rounds(await_worker(server, other_than=pid), 3)
    assert [line for line in server.log()[at:].splitlines() if re.search(r" ERROR: | FATAL: |asker.* exited", line)] == []


@pytest.mark.any_major
def test_a_stack_that_is_too_small(new_cluster):
    """The limit of the process that asks says nothing of a start, which has another: what runs was started with more."""
    server = create_extension(new_cluster(huge_pages=False).start())
    for kilobytes in (600, 64, 4):
        run("runuser", "-u", SUPERUSER, "--", "prlimit", f"--pid={server.postmaster}", f"--stack={kilobytes * KB}:")
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is None, (kilobytes, row["detail"])
    run("runuser", "-u", SUPERUSER, "--", "prlimit", f"--pid={server.postmaster}", f"--stack={8 * MB}:")
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    assert row["will_start"] is True, row["detail"]
