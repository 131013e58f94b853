"""No view starts a program. Where one runs, it ends with all that it has started, also if the postmaster is process 1."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.cluster import Cluster, Install, rows
from harness.library import library
from harness.own_programs import own_programs
from harness.pid_namespace import server_in_pid_namespace
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_worker, worker
from harness.processes import alive, children
from harness.status import EXTENSION, checked_status, create_extension, own_notes
from harness.strace import traced

VIEWS = ("hugepage_status", "hugepage_findings", "hugepage_recommendations", "hugepage_nodes")
"""All that reads the pending configuration."""

STRAY = "sleep 3.0917"
"""What the library leaves behind; no other process has that command line."""

IN_GROUP = f'FILE *f = popen("{STRAY}; exit 2", "r"); char c; if (f) {{ (void) !fread(&c, 1, 1, f); pclose(f); }}'
"""Waits for a shell, as libraries that ask another program for a key do."""

ESCAPED = f'if (fork() == 0) {{ setsid(); execl("/bin/sh", "sh", "-c", "{STRAY}; exit 2", NULL); _exit(2); }} sleep(30);'
"""A daemon in a session of its own."""

STUCK = "for (;;) sleep(1);"


def strays() -> list[int]:
    """Processes that the library has left behind."""
    def is_stray(process: Path) -> bool:
        try:
            return STRAY.replace(" ", "\0") in (process / "cmdline").read_text()
        except OSError:
            return False
    return [int(process.name) for process in Path("/proc").glob("[0-9]*") if is_stray(process)]


OPTION = "48MB"
"""shared_buffers of the command line of `server_as_process_1`, as `docker run postgres -c ...` has it."""


@pytest.fixture
def server_as_process_1(new_cluster, root) -> Iterator[Cluster]:
    """A server whose postmaster is process 1 of its PID namespace, as in most containers."""
    with server_in_pid_namespace(new_cluster(**WATCHED), "-c", f"shared_buffers={OPTION}", as_process_1=True) as server:
        assert server.postmaster == 1
        yield create_extension(server)


def test_options_of_a_container(server_as_process_1):
    """A container repeats its command line, whatever the files say."""
    [row] = server_as_process_1.sql("SELECT * FROM hugepage_status")
    assert (row["restart_outlook"], own_notes(row)) == ("base", [])
    [start] = server_as_process_1.sql("SELECT lands_in, shared_memory FROM hugepage_preflight()")
    assert (start["lands_in"], start["shared_memory"]) == ("base", row["shared_memory"])
    # What the files set beside it counts.
    server_as_process_1.conf(max_connections=33)
    [row] = server_as_process_1.sql("SELECT * FROM hugepage_status")
    assert row["restart_outlook"] == "unknown" and "max_connections is 20, on disk 33" in own_notes(row)[0]


@pytest.mark.parametrize("init", [IN_GROUP, ESCAPED], ids=["in its group", "escaped"])
@pytest.mark.parametrize("end", ["timeout", "terminated", "stopped"])
def test_ends_with_the_call(server_as_process_1, init, end):
    """A bystander lives on, and no process is left whose end could be taken for that of a server process."""
    server = server_as_process_1
    bystander = server.connect()
    server.conf(shared_preload_libraries=f"{EXTENSION}, {library(server.install, server.root, init)}")
    session = server.connect()
    rows(session, "SET statement_timeout = '1s'")
    # The view answers at once.
    [row] = rows(session, "SELECT restart_outlook FROM hugepage_status")
    assert row["restart_outlook"] == "unknown"
    if end != "timeout":
        rows(session, "RESET statement_timeout")
        connection = psycopg2.connect(session.dsn, async_=True)
        until("the session", lambda: connection.poll() == psycopg2.extensions.POLL_OK)
        connection.cursor().execute("SELECT * FROM hugepage_preflight()")
        until("the library to be loaded", strays)
    if end == "timeout":
        with pytest.raises(psycopg2.errors.QueryCanceled):
            rows(session, "SELECT * FROM hugepage_preflight()")
    elif end == "terminated":
        server.sql("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)
    else:
        return    # The fixture stops the server, which must not wait for the program.
    # The worker may ask, too.
    until("the library's processes to end", lambda: not strays())
    assert rows(bystander, "SELECT 1 AS alive") == [{"alive": 1}]
    assert "terminating any other active server processes" not in server.log()


@pytest.mark.any_major
def test_deadline_and_leftovers(server_as_process_1):
    """A program that ends and leaves a process behind is collected with it; one that does not end is given up."""
    server = server_as_process_1
    bystander = server.connect()
    leave = ESCAPED.replace("sleep(30);", "")
    server.conf(shared_preload_libraries=f"{EXTENSION}, {library(server.install, server.root, leave)}")
    [row] = server.sql("SELECT will_start FROM hugepage_preflight()")
    assert row["will_start"] is True and not strays()
    (server.root / "library.so").unlink()
    library(server.install, server.root, IN_GROUP.replace("3.0917", "300.0917"))
    [row] = server.sql("SELECT will_start, detail FROM hugepage_preflight()")
    assert row["will_start"] is None and "longer than 10 s" in row["detail"]
    assert rows(bystander, "SELECT 1 AS alive") == [{"alive": 1}]
    assert "terminating any other active server processes" not in server.log()


def test_no_view_starts_a_program(new_cluster, root):
    """Neither after a reload nor where a parameter differs, and whatever the time stamps of the files say."""
    server = create_extension(new_cluster().start())
    server.conf(work_mem="5MB")
    server.sql("SELECT pg_reload_conf()")
    for change in ({}, {"shared_buffers": "140MB"}, {"work_mem": "5XB"}):
        server.conf(**change)
        os.utime(server.data / "postgresql.auto.conf", (4e9, 4e9))
        session = server.connect()
        with traced(session.info.backend_pid, "execve,clone,clone3,fork,vfork") as trace:
            for view in VIEWS:
                rows(session, f"SELECT * FROM {view}")
            assert not trace.lines("")
    # The same for sessions that begin: each reads the files once.
    with traced(server.postmaster, "execve", follow=True) as trace:
        for _ in range(20):
            server.sql("SELECT * FROM hugepage_status")
        assert not trace.lines("execve")


SAME = {
    "reloaded": {"work_mem": "5MB"},
    "another unit": {"shared_buffers": "131072kB"},
    "another word": {"huge_pages": "try", "hot_standby": "yes"},
    "automatic": {"wal_buffers": "-1"},
    "of no part in memory": {"port": 6432, "listen_addresses": "localhost"},
    "of a library that is not loaded": {"other.setting": "5"},
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_same_as_running(new_cluster, change):
    server = create_extension(new_cluster().start())
    server.conf(**change)
    row = checked_status(server, restart_outlook="base")
    assert own_notes(row) == []
    [start] = server.sql("SELECT lands_in, shared_memory FROM hugepage_preflight()")
    assert (start["lands_in"], start["shared_memory"]) == ("base", row["shared_memory"])


DIFFERENT = {
    "a value": ({"shared_buffers": "140MB"}, "shared_buffers is 128MB, on disk 140MB"),
    "a word": ({"wal_level": "minimal", "max_wal_senders": 0}, "wal_level is replica, on disk minimal"),
    "the default": ({"max_prepared_transactions": None}, "max_prepared_transactions is 5, on disk not set"),
    "no value": ({"work_mem": "5XB"}, "work_mem is 4MB, on disk 5XB"),
    "no value for new sessions": ({"log_disconnections": "sometimes"}, "log_disconnections is off, on disk sometimes"),
    "a library": ({"shared_preload_libraries": "auto_explain"}, 'shared_preload_libraries is "", on disk auto_explain'),
}


@pytest.mark.parametrize("change,expected", DIFFERENT.values(), ids=DIFFERENT)
def test_differs(new_cluster, change, expected):
    """Unknown, with the parameter and both its values, and who tells more."""
    server = create_extension(new_cluster(max_prepared_transactions=5).start())
    session, before = server.connect(), dict(server.settings)
    checked_status(server, session, restart_outlook="base")
    server.conf(**change)
    row = checked_status(server, session, restart_outlook="unknown", verdict="notice")
    [note] = own_notes(row)
    assert expected in note and "SELECT * FROM hugepage_preflight() asks the server's program" in note
    server.conf(**{name: before.get(name) for name in change})
    assert own_notes(checked_status(server, session, restart_outlook="base")) == []


def test_files_that_no_start_accepts(new_cluster):
    server = create_extension(new_cluster().start())
    for line, error in (("shared_buffers = = 5", "syntax error"), ("shared_bufers = 5", 'unrecognized configuration parameter "shared_bufers"')):
        conf = server.data / "harness.conf"
        conf.write_text(conf.read_text() + line + "\n")
        row = checked_status(server, restart_outlook="fails")
        assert error in row["message"] and "harness.conf" in row["message"], row
        server.conf()


def test_a_named_pipe_in_the_configuration(new_cluster):
    """Opening it would wait for a writer."""
    server = create_extension(new_cluster().start())
    pipe = server.data / "pipe.conf"
    os.mkfifo(pipe)
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include 'pipe.conf'\n")
    session = server.connect()
    rows(session, "SET statement_timeout = '5s'")
    row = checked_status(server, session, restart_outlook="unknown")
    assert any("pipe.conf" in note for note in row["notes"])


@pytest.mark.any_major
def test_hidden_values(new_cluster):
    """Who may execute the function and not read all settings sees the name alone."""
    server = create_extension(new_cluster().start())
    server.conf(shared_preload_libraries="auto_explain")
    for statement in ("CREATE ROLE other LOGIN", "GRANT SELECT ON hugepage_status TO other",
                      "GRANT EXECUTE ON FUNCTION hugepage_status() TO other"):
        server.sql(statement)
    [row] = server.sql("SELECT notes FROM hugepage_status", user="other")
    assert "shared_preload_libraries is another one on disk" in own_notes(row)[0]


@pytest.mark.any_major
def test_another_program_on_disk(new_cluster, root):
    """An update has replaced the server's program: what it needs is not what the running one has."""
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-programs-") as place:
        os.chmod(place, 0o755)
        server = create_extension(new_cluster(install=own_programs(Install.find(), Path(place))).start())
        checked_status(server, restart_outlook="base")
        program = server.install.bindir / "postgres"
        copy = program.with_name("postgres.new")
        copy.write_bytes(program.read_bytes())
        copy.chmod(0o755)
        copy.rename(program)
        row = checked_status(server, restart_outlook="unknown")
        assert f'"{program}" was replaced' in own_notes(row)[0]
        server.stop("immediate")


def test_worker_asks_once(new_cluster, root):
    """And all views have its answer, without a program of their own."""
    server = create_extension(new_cluster(**WATCHED).start())
    pid = await_worker(server)
    with traced(pid, "execve", follow=True) as trace:
        server.conf(shared_buffers="140MB")
        until("the answer", lambda: server.sql("SELECT restart_outlook FROM hugepage_status")[0]["restart_outlook"] == "base")
        [row] = server.sql("SELECT notes FROM hugepage_status")
        assert own_notes(row) == []
        # A second change within the same minute has to wait, and until then nothing is known.
        server.conf(shared_buffers="150MB")
        row = checked_status(server, restart_outlook="unknown")
        assert "shared_buffers is 128MB, on disk 150MB" in own_notes(row)[0] and "the worker has not asked" in own_notes(row)[0]
        until("three samples", lambda: len(trace.lines("execve.* = 0")) >= 1)
        assert len(trace.lines("execve.*postgres.* = 0")) == 1


def test_worker_of_a_stuck_library_stops_at_once(new_cluster, root):
    server = create_extension(new_cluster(**PRELOADED).start())
    pid = await_worker(server)
    stuck = library(server.install, server.root, STUCK)
    server.conf(shared_preload_libraries=f"{EXTENSION}, {stuck}")
    server.sql("SELECT pg_reload_conf()")
    [program] = until("the program", lambda: children(pid))
    began = time.monotonic()
    server.stop("fast")
    # Much less than the deadline of the answer.
    assert time.monotonic() - began < 5
    assert not alive(program)


@pytest.mark.any_major
def test_worker_after_a_stuck_library(new_cluster, root):
    """The answer that did not come is a reason, not a refusal."""
    server = create_extension(new_cluster(**PRELOADED).start())
    pid = await_worker(server)
    stuck = library(server.install, server.root, STUCK)
    server.conf(shared_preload_libraries=f"{EXTENSION}, {stuck}")
    server.sql("SELECT pg_reload_conf()")
    row = until("the worker to give up", lambda: next(iter(server.sql(
        "SELECT * FROM hugepage_status WHERE array_to_string(notes, ' ') LIKE '%longer than 10 s%'")), None))
    assert row["restart_outlook"] == "unknown" and "shared_preload_libraries is" in own_notes(row)[0]
    assert worker(server) == pid and not children(pid)


@pytest.mark.any_major
def test_turned_off(new_cluster, root):
    server = create_extension(new_cluster(**{**WATCHED, f"{EXTENSION}.ask_server_program": False}).start())
    pid = await_worker(server)
    with traced(pid, "execve", follow=True) as trace:
        server.conf(shared_buffers="140MB")
        server.sql("SELECT pg_reload_conf()")
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is None and "pg_hugepages.ask_server_program is off" in row["detail"]
        row = checked_status(server, restart_outlook="unknown")
        assert "pg_hugepages.ask_server_program is off" in own_notes(row)[0]
        until("the reload", lambda: "received SIGHUP" in server.log())
        assert not trace.lines("execve")
    with pytest.raises(psycopg2.Error):
        server.sql("SET pg_hugepages.ask_server_program = on")
