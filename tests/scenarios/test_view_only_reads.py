"""No session and no worker starts a program, the asker alone does. It ends with all that it has started, also if the postmaster
is process 1."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.asker import askers
from harness.cluster import Cluster, Install, rows
from harness.library import library
from harness.own_programs import own_programs
from harness.pid_namespace import server_in_pid_namespace
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer
from harness.status import EXTENSION, FORGOTTEN, checked_status, create_extension, own_notes
from harness.strace import traced

pytestmark = pytest.mark.own_servers

VIEWS = ("hugepage_status", "hugepage_findings", "hugepage_recommendations", "hugepage_nodes")
"""All that reads the pending configuration."""

STRAY = "sleep 3.0917"
"""What the library leaves behind; no other process has that command line."""

IN_GROUP = f'FILE *f = popen("{STRAY}; exit 2", "r"); char c; if (f) {{ (void) !fread(&c, 1, 1, f); pclose(f); }}'
"""Waits for a shell, as libraries that ask another program for a key do."""

ESCAPED = f'if (fork() == 0) {{ setsid(); execl("/bin/sh", "sh", "-c", "{STRAY}; exit 2", NULL); _exit(2); }} sleep(30);'
"""A daemon in a session of its own."""

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
    await_answer(server_as_process_1)
    [start] = server_as_process_1.sql("SELECT will_start, shared_memory FROM hugepage_preflight()")
    assert start["will_start"] is True and start["shared_memory"] > row["shared_memory"]
    [row] = server_as_process_1.sql("SELECT * FROM hugepage_status")
    assert (row["restart_outlook"], own_notes(row)) == ("base", [])
    # The files of a container are not those of the host that boots.
    assert any("what the next boot gives is unknown" in note for note in row["notes"]), row


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
    # The worker asks, too.
    until("the library's processes to end", lambda: not strays())
    assert rows(bystander, "SELECT 1 AS alive") == [{"alive": 1}]
    assert "terminating any other active server processes" not in server.log()


@pytest.mark.any_major
def test_deadline_and_leftovers(server_as_process_1):
    """A program that ends and leaves a process behind is collected with it; one that does not end is given up, after 10 s."""
    server = server_as_process_1
    bystander = server.connect()
    leave = ESCAPED.replace("sleep(30);", "")
    server.conf(shared_preload_libraries=f"{EXTENSION}, {library(server.install, server.root, leave)}")
    [row] = server.sql("SELECT will_start FROM hugepage_preflight()")
    assert row["will_start"] is True
    # The worker asks, too.
    until("what is left to be collected", lambda: not strays())
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
    # The same for sessions that begin.
    with traced(server.postmaster, "execve", follow=True) as trace:
        for _ in range(20):
            server.sql("SELECT * FROM hugepage_status")
        assert not trace.lines("execve")


SAME = {
    "reloaded": {"work_mem": "5MB"},
    "another unit": {"shared_buffers": "131072kB"},
    "another word": {"huge_pages": "no", "hot_standby": "yes"},
    "automatic": {"wal_buffers": "-1"},
    "of no part in memory": {"port": 6432, "listen_addresses": "localhost"},
    "of a library that is not loaded": {"other.setting": "5"},
}


@pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_same_as_running(new_cluster, change, preloaded):
    """Files that were not read since they changed are unknown; the reload finds nothing that only a start would change. It forgets
    what it refuses, so that without the worker's question one thing is open."""
    server = create_extension(new_cluster(huge_pages=False, **(PRELOADED if preloaded else {})).start())
    checked_status(server, restart_outlook="base")
    server.conf(**change)
    [note] = own_notes(checked_status(server, restart_outlook="unknown"))
    assert f'"{server.data}/harness.conf" is newer than the last reload: SELECT pg_reload_conf(); ' in note
    server.reload()
    if preloaded:
        await_answer(server)
    row = checked_status(server, restart_outlook="base" if preloaded else "unknown")
    assert own_notes(row) == ([] if preloaded else [REFUSALS_ARE_FORGOTTEN])
    [start] = server.sql("SELECT lands_in, shared_memory FROM hugepage_preflight()")
    assert (start["lands_in"], start["shared_memory"]) == ("base", row["shared_memory"])


REFUSALS_ARE_FORGOTTEN = FORGOTTEN + "; SELECT * FROM hugepage_preflight() asks the server's program"

PENDING, REFUSED = "a restart is pending for {}; ", "the last reload has refused the value of {}; "
DIFFERENT = {
    "a value": ({"shared_buffers": "140MB"}, PENDING.format("shared_buffers")),
    "two words": ({"wal_level": "minimal", "max_wal_senders": 4}, PENDING.format("max_wal_senders, wal_level")),
    "the default": ({"max_prepared_transactions": None}, PENDING.format("max_prepared_transactions")),
    "no value": ({"work_mem": "5XB"}, REFUSED.format("work_mem")),
    "no value for new sessions": ({"log_disconnections": "sometimes"}, REFUSED.format("log_disconnections")),
    "a library": ({"shared_preload_libraries": "auto_explain"}, PENDING.format("shared_preload_libraries")),
}


@pytest.mark.parametrize("change,expected", DIFFERENT.values(), ids=DIFFERENT)
def test_differs(new_cluster, change, expected):
    """Unknown, with the parameter, without its values, and with who tells more."""
    # The server keeps as pending what comes and goes again; it ends with the value that runs.
    running = {"max_prepared_transactions": 5, "wal_level": "replica", "max_wal_senders": 5, "shared_preload_libraries": ""}
    server = create_extension(new_cluster(**running).start())
    session, before = server.connect(), dict(server.settings)
    checked_status(server, session, restart_outlook="base")
    server.conf(**change)
    [note] = own_notes(checked_status(server, session, restart_outlook="unknown", verdict="notice"))
    assert note.startswith(f'"{server.data}/harness.conf" is newer than the last reload: SELECT pg_reload_conf(); ')
    server.reload(session)
    # A session that runs does not look at what is for new ones.
    for asked in (session, None) if "log_disconnections" not in change else (None,):
        [note] = own_notes(checked_status(server, asked, restart_outlook="unknown", verdict="notice"))
        assert note == expected + "SELECT * FROM hugepage_preflight() asks the server's program"
    server.conf(**{name: before.get(name) for name in change})
    server.reload(session)
    for asked in (session, None):
        assert own_notes(checked_status(server, asked, restart_outlook="unknown")) == [REFUSALS_ARE_FORGOTTEN]


def test_files_that_no_start_accepts(new_cluster):
    """Only the server's program parses them: it tells why, also a reload does not load them."""
    server = create_extension(new_cluster(**PRELOADED).start())
    for line, error in (("shared_buffers = = 5", "syntax error"), ("shared_bufers = 5", 'unrecognized configuration parameter "shared_bufers"')):
        conf = server.data / "harness.conf"
        conf.write_text(conf.read_text() + line + "\n")
        checked_status(server, restart_outlook="unknown")
        server.sql("SELECT pg_reload_conf()")
        [start] = server.sql("SELECT will_start, detail FROM hugepage_preflight()")
        assert start["will_start"] is False and error in start["detail"] and "harness.conf" in start["detail"]
        row = checked_status(server, restart_outlook="fails")
        assert error in row["message"] and "harness.conf" in row["message"], row
        server.conf()


@pytest.mark.any_major
def test_a_named_pipe_in_the_configuration(new_cluster):
    """Opening it waits for a writer: no session does, and the program that does ends with the session's wait."""
    server = create_extension(new_cluster().start())
    pipe = server.data / "pipe.conf"
    os.mkfifo(pipe)
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include 'pipe.conf'\n")
    session = server.connect()
    row = checked_status(server, session, restart_outlook="unknown")
    assert any("postgresql.conf" in note for note in row["notes"])
    rows(session, "SET statement_timeout = '1s'")
    with pytest.raises(psycopg2.errors.QueryCanceled):
        rows(session, "SELECT * FROM hugepage_preflight()")
    until("the asker and its program to end", lambda: not askers(server), seconds=5)


@pytest.mark.any_major
@pytest.mark.parametrize("change,names", [({"max_connections": "many"}, 'parameter "max_connections"'), ({"work_mem": "5XB"}, 'parameter "work_mem"'),
                                          ({"shared_preload_libraries": "pg_hugepages, nonesuch"}, "refused")], ids=["number", "size", "library"])
def test_hidden_values(new_cluster, change, names):
    """Who may not read pg_file_settings is told of settings that are not loaded only which parameter is refused."""
    server = create_extension(new_cluster(**PRELOADED).start())
    for statement in ("CREATE ROLE watcher LOGIN IN ROLE pg_monitor", "CREATE ROLE other LOGIN", "GRANT SELECT ON hugepage_status TO other",
                      "GRANT EXECUTE ON FUNCTION hugepage_status() TO other"):
        server.sql(statement)
    server.conf(**change)
    [value] = change.values()
    secret = value.split()[-1]
    [start] = server.sql("SELECT detail FROM hugepage_preflight()")
    assert secret in start["detail"]
    assert secret in server.sql("SELECT message FROM hugepage_status")[0]["message"]
    [start] = server.sql("SELECT * FROM hugepage_preflight()", user="watcher")
    assert start["will_start"] is False and names in start["detail"] and secret not in str(start)
    for user in ("watcher", "other"):
        [row] = server.sql("SELECT * FROM hugepage_status", user=user)
        assert row["restart_outlook"] == "fails" and names in row["message"] and secret not in str(row), row


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
        assert f'replaced on disk since the start: "{program}"' in own_notes(row)[0]
        server.stop("immediate")
