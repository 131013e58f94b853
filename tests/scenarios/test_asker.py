"""The asker that the worker starts: once for a change, for all views, and never in the way of the worker or of the server's end."""

import os
import tempfile
import time
from pathlib import Path

import psycopg2
import pytest

from harness.asker import askers, programs
from harness.cluster import Cluster, Install
from harness.library import library
from harness.own_programs import own_programs
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer, await_worker, worker
from harness.processes import alive
from harness.status import EXTENSION, checked_status, create_extension, own_notes
from harness.strace import traced

pytestmark = pytest.mark.own_servers

STUCK = "for (;;) sleep(1);"


def test_worker_asks_once(new_cluster, root):
    """And all views have its answer. It runs no program itself, and starts an asker at most once a sample, which are 5 s apart here, so
    that two changes fit between them."""
    server = create_extension(new_cluster(**WATCHED | {f"{EXTENSION}.sample_interval": 5}).start())
    pid = await_worker(server)
    await_answer(server)
    question = r'execve.*"shared_memory_size_in_huge_pages".* = 0'
    with traced(server.postmaster, "execve", follow=True) as trace, traced(pid, "execve,?clone,?clone3,?fork,?vfork,?statx,?newfstatat,?lstat") as of_worker:
        server.conf(shared_buffers="140MB")
        until("the answer", lambda: server.sql("SELECT restart_outlook FROM hugepage_status")[0]["restart_outlook"] == "base")
        [row] = server.sql("SELECT * FROM hugepage_status")
        assert own_notes(row) == []
        # A change before the next sample has to wait, and until then nothing is known.
        for size in ("150MB", "160MB"):
            server.conf(shared_buffers=size)
            [note] = own_notes(checked_status(server, restart_outlook="unknown"))
            assert "the worker asks the server's program within a minute" in note and "harness.conf" in note
        until("the answer", lambda: server.sql("SELECT restart_outlook FROM hugepage_status")[0]["restart_outlook"] == "base")
        assert len(trace.lines(question)) == 2
        assert not of_worker.lines("execve|clone|fork")


def test_asker_of_a_stuck_library_stops_at_once(new_cluster, root):
    server = create_extension(new_cluster(**PRELOADED).start())
    await_worker(server)
    stuck = library(server.install, server.root, STUCK)
    server.conf(shared_preload_libraries=f"{EXTENSION}, {stuck}")
    server.sql("SELECT pg_reload_conf()")
    [program] = until("the program", lambda: programs(server))
    began = time.monotonic()
    server.stop("fast")
    # Much less than the deadline of the answer.
    assert time.monotonic() - began < 3
    assert not alive(program)


@pytest.mark.any_major
def test_worker_after_a_stuck_library(new_cluster, root):
    """The answer that did not come for 10 s, the time limit, is a reason, not a refusal."""
    server = create_extension(new_cluster(**PRELOADED).start())
    pid = await_worker(server)
    stuck = library(server.install, server.root, STUCK)
    server.conf(shared_preload_libraries=f"{EXTENSION}, {stuck}")
    server.sql("SELECT pg_reload_conf()")
    row = until("the asker to give up", lambda: next(iter(server.sql(
        "SELECT * FROM hugepage_status WHERE array_to_string(notes, ' ') LIKE '%longer than 10 s%'")), None))
    assert row["restart_outlook"] == "unknown" and "a restart is pending for shared_preload_libraries" in own_notes(row)[0]
    until("the asker to end", lambda: not askers(server))
    assert worker(server) == pid


@pytest.mark.any_major
@pytest.mark.parametrize("settings", [{}, PRELOADED], ids=["loaded", "preloaded"])
def test_a_server_at_a_path_beyond_ascii(new_cluster, settings):
    """The postmaster makes question marks of such a path of the asker's library (bgworker.c), which is found all the same."""
    with tempfile.TemporaryDirectory(prefix="größe-") as place:
        os.chmod(place, 0o755)
        server = new_cluster(install=own_programs(Install.find(), Path(place)), huge_pages=False, **settings)
        create_extension(server.start())
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is True, row
        server.stop("immediate")


def seen(server: Cluster, seconds: float) -> set[int]:
    """The askers that ran in that time."""
    found: set[int] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found.update(askers(server))
        time.sleep(0.005)
    return found


def test_a_kernel_without_huge_pages(new_cluster, root):
    """No asker finds out what their pool is at the next boot: the worker, which looks every second, does not start one after the other."""
    server = new_cluster(huge_pages=False, **WATCHED)
    known = server.root / "meminfo"
    known.write_text("".join(line for line in Path("/proc/meminfo").read_text().splitlines(keepends=True) if not line.startswith("Huge")))
    create_extension(server.start(through=["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/meminfo && exec "$@"', str(known)]))
    await_worker(server)
    assert len(seen(server, 6)) <= 1


@pytest.mark.any_major
def test_turned_off(new_cluster, root):
    server = create_extension(new_cluster(**{**WATCHED, f"{EXTENSION}.ask_server_program": False}).start())
    await_worker(server)
    with traced(server.postmaster, "execve", follow=True) as trace:
        server.conf(shared_buffers="140MB")
        server.reload()
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is None and "pg_hugepages.ask_server_program is off" in row["detail"]
        row = checked_status(server, restart_outlook="unknown")
        assert "pg_hugepages.ask_server_program is off" in own_notes(row)[0]
        assert not trace.lines("execve")
    with pytest.raises(psycopg2.Error):
        server.sql("SET pg_hugepages.ask_server_program = on")
