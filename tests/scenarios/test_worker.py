"""The worker: it warns before a loss, logs each event once, and blocks nothing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cgroup import Cgroup
from harness.next_boot import well
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer, await_samples, await_worker, events, history, worker
from harness.processes import alive
from harness.server_log import logged, messages
from harness.status import assert_hint_is_exact, checked_status, create_extension
from harness.strace import traced
from harness.units import MB

pytestmark = pytest.mark.own_servers

LOSES = r"^the next start would lose huge pages \(also after a crash\) \[restart_loses\]$"
AGAIN = "^the next start would get its huge pages again \\(also after a crash\\)$"
CAPPED = r"^a cgroup allows fewer huge pages than shared memory uses \[cgroup_limit\]$"
UNCAPPED = "^the cgroup allows all huge pages of shared memory again$"


def test_warn_once_when_the_pool_shrinks(new_cluster, pool):
    """The next sample warns, once; recovery is logged once; the hint is exact."""
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    pid = await_worker(server)
    with traced(pid, "openat") as trace:
        borrowed.resize(0)
        until("the warning", lambda: logged(server, LOSES, "WARNING"))
        # A look that had begun before, and the one that warns.
        assert len(trace.lines('"/proc/meminfo"')) <= 2
    checked_status(server, verdict="warning", landed_in="hugetlb", restart_outlook="base", generation=1)
    await_samples(server, 3)
    [warning] = logged(server, LOSES)
    assert f"Next start: only 0 of the {needed} pages of 2 MB needed are guaranteed." in warning.detail
    assert events(server) == [("start", "hugetlb", False), ("change", "hugetlb", True)]

    borrowed.resize(needed)
    until("the recovery", lambda: logged(server, AGAIN, "LOG"))
    await_samples(server, 3)
    assert len(logged(server, AGAIN)) == 1 and len(logged(server, LOSES)) == 1
    assert events(server)[2:] == [("change", "hugetlb", False)]
    assert_hint_is_exact(server, warning.hint, borrowed)


@pytest.mark.any_major
def test_warn_when_a_cgroup_limit_is_lowered(new_cluster, pool, cgroup):
    """Both kinds: rsvd.max, which the next start needs, and max, which kills processes now."""
    server, wide, narrow = new_cluster(**WATCHED), cgroup(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    wide.limit(2 * MB, max=needed * 2 * MB, rsvd_max=needed * 2 * MB)
    narrow.limit(2 * MB, rsvd_max=needed * MB)
    create_extension(server.start(within=wide))
    pid = await_worker(server)

    def move(group: Cgroup) -> None:
        group.join(server.postmaster)
        group.join(pid)

    def assert_warned(group: Cgroup, warned: str, over: str, end: Callable[[], None]) -> None:
        until("the warning", lambda: logged(server, warned, "WARNING"))
        await_samples(server, 2)
        [warning] = logged(server, warned)
        assert str(group.directory) in warning.hint
        assert warning.hint == checked_status(server)["hint"]
        end()
        until("the recovery", lambda: logged(server, over, "LOG"))
        await_samples(server, 2)
        assert len(logged(server, warned)) == 1 and len(logged(server, over)) == 1

    # The kernel lowers no rsvd.max below its usage, so the server moves to where it is lower.
    move(narrow)
    assert_warned(narrow, LOSES, AGAIN, lambda: move(wide))
    wide.limit(2 * MB, max=needed * MB)
    assert_warned(wide, CAPPED, UNCAPPED, lambda: wide.limit(2 * MB, max=needed * 2 * MB))
    assert [message.level for message in messages(server.log())] == ["LOG", "WARNING", "LOG", "WARNING", "LOG"]
    assert history(server)[-2]["detail"] == "threats from none to cgroup_limit"


@pytest.mark.any_major
def test_warn_when_the_configuration_on_disk_changes(new_cluster, pool):
    """Warns without a reload if the next start would lose huge pages or fail."""
    server = new_cluster(**WATCHED)
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    await_worker(server)
    for change, warned in (
        ({"shared_buffers": "256MB"}, r"^the next start would lose huge pages with the configuration on disk \[restart_loses\]$"),
        ({"huge_pages": True}, r"^the next start would fail with the configuration on disk \[restart_fails\]$"),
    ):
        server.conf(**change)
        until("the warning", lambda: logged(server, warned, "WARNING"))
    await_samples(server, 2)
    # From safe to lost is a loss; from lost to failing there is nothing more to lose.
    assert events(server)[1:] == [("change", "hugetlb", True), ("change", "hugetlb", False)]
    server.conf(shared_buffers="128MB", huge_pages="try")
    await_answer(server)
    until("the recovery", lambda: logged(server, AGAIN, "LOG"))
    await_samples(server, 2)
    assert [message.level for message in messages(server.log())] == ["LOG", "WARNING", "WARNING", "LOG"]
    checked_status(server, verdict=well(), restart_outlook="hugetlb")


def test_say_that_a_crash_is_safe_only_if_it_is(new_cluster, pool):
    """The files are as before again, and the pool is still too small: a crash loses what it would have lost before."""
    server = new_cluster(**WATCHED)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    await_worker(server)
    server.conf(shared_buffers="256MB")
    until("the warning", lambda: logged(server, r"^the next start would lose huge pages with the configuration on disk \[restart_loses\]$"))
    borrowed.resize(borrowed.persistent() - 1)
    until("the warning", lambda: logged(server, r"^the restart after a crash of one process would lose huge pages \[crash_loses\]$"))
    server.conf(shared_buffers="128MB")
    await_answer(server)
    until("the old files", lambda: events(server)[-1][0] == "change" and checked_status(server, crash_outlook="base"))
    await_samples(server, 2)
    assert [message.level for message in messages(server.log())] == ["LOG", "WARNING", "WARNING"]
    assert server.crash()
    checked_status(server, landed_in="base")


@pytest.mark.any_major
def test_restart_the_worker(new_cluster, pool):
    """After TERM it starts again, a minute later, and repeats no message, also where the history file is not writable; after KILL
    the server restarts, as for any of its processes."""
    server, unwritable = new_cluster(**WATCHED, logging_collector=True, log_filename="collected.log"), new_cluster(**WATCHED)
    borrowed = pool(2 * MB, unwritable.pages_needed(2 * MB))
    await_worker(unwritable.start())
    unwritable.stop()
    (unwritable.data / "pg_hugepages.history").chmod(0o400)
    borrowed.resize(server.pages_needed(2 * MB))
    create_extension(server.start())
    at = len(unwritable.log())
    create_extension(unwritable.start())
    of_unwritable = await_worker(unwritable)
    await_samples(unwritable, 2)
    collected = server.data / "log" / "collected.log"
    first = await_worker(server)
    until("the block in the collector's file", lambda: messages(collected.read_text()))
    os.kill(first, signal.SIGTERM)
    unwritable.sql("SELECT pg_terminate_backend(%s)", of_unwritable)
    second = await_worker(server, other_than=first)
    await_worker(unwritable, other_than=of_unwritable)
    await_samples(server, 2)
    await_samples(unwritable, 2)
    found = [(message.level, message.text.split(" \"")[0]) for message in messages(unwritable.log()[at:])]
    assert found == [("WARNING", "shared memory regressed: it was in huge pages of 2 MB, is in 4 kB pages [regressed]"),
                     ("LOG", "could not open history file")]
    assert len(messages(collected.read_text())) == 1 and len(history(server)) == 1
    os.kill(second, signal.SIGKILL)
    until("the crash to be noticed", lambda: "reinitializing" in collected.read_text())
    until("recovery", server.ready)
    await_worker(server, other_than=second)
    await_answer(server)
    checked_status(server, verdict=well(), generation=2)
    assert events(server) == [("start", "hugetlb", False), ("crash restart", "hugetlb", False)]
    assert [message.level for message in messages(collected.read_text())] == ["LOG", "LOG"]


def test_a_reload_is_a_look(new_cluster, pool):
    """Also with sample_interval = 0."""
    borrowed = pool(2 * MB, 8)
    server = create_extension(new_cluster(**PRELOADED, huge_pages=False).start())
    await_worker(server)
    borrowed.resize(9)
    server.reload()
    until("the record", lambda: history(server)[-1]["detail"] == "nr_hugepages from 8 to 9")


def test_block_nothing(new_cluster):
    """pg_stat_activity shows it without a database. DROP DATABASE and a stop of the server do not wait for it, and it
    ends when the postmaster is killed."""
    server = new_cluster(**PRELOADED).start()
    pid = await_worker(server)
    [row] = server.sql("SELECT datname, backend_type FROM pg_stat_activity WHERE pid = %s", pid)
    assert row == {"datname": None, "backend_type": "pg_hugepages"}
    server.sql("CREATE DATABASE other")
    session = server.connect()
    with session.cursor() as cursor:
        cursor.execute("SET statement_timeout = '20s'")
        cursor.execute("DROP DATABASE other")
    postmaster = server.postmaster
    os.kill(postmaster, signal.SIGKILL)
    until("the worker to end with its postmaster", lambda: not alive(pid))
    until("the postmaster to be gone", lambda: not Path(f"/proc/{postmaster}").exists())
    server.start()
    assert worker(server) or await_worker(server)
    server.stop("smart")
    assert "was terminated by signal" not in server.log()


@pytest.mark.any_major
def test_warn_once_without_a_history(new_cluster, pool):
    """No warning is repeated if the history is off."""
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    await_worker(server)
    server.conf(**{"pg_hugepages.history_size": 0})
    server.stop()
    kept = (server.data / "pg_hugepages.history").read_bytes()
    at = len(server.log())
    server.start()
    await_worker(server)
    borrowed.resize(0)
    until("the warning", lambda: logged(server, LOSES, "WARNING"))
    await_samples(server, 2)
    assert [message.level for message in messages(server.log()[at:])] == ["LOG", "WARNING"]
    assert (server.data / "pg_hugepages.history").read_bytes() == kept and history(server) == []
