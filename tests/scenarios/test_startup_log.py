"""The log message and the record of every allocation of shared memory."""

import re
import shlex

import pytest

from harness.cluster import Cluster, rows
from harness.next_boot import well
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer, await_worker, events, history, worker
from harness.server_log import logged, messages
from harness.smaps import main_mapping
from harness.status import checked_status, create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers

LANDED = r"^shared memory landed in \d+ huge pages of 2 MB$"
MISSED = r"^shared memory did not land in huge pages \[base_pages\]$"
LOST = r"^shared memory regressed: it was in huge pages of 2 MB, is in 4 kB pages \[regressed\]$"


def new_messages(cluster: Cluster, before: int) -> list[tuple[str, str]]:
    """Level and text of our messages behind so many characters of the log."""
    return [(message.level, message.text) for message in messages(cluster.log()[before:])]


def assert_one(found: list[tuple[str, str]], level: str, pattern: str) -> None:
    assert len(found) == 1 and found[0][0] == level and re.search(pattern, found[0][1]), found


def test_log_starts(new_cluster, pool):
    """Restarts that keep, lose and regain huge pages; the first row after a loss; log levels."""
    server = new_cluster(**PRELOADED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    await_answer(server)
    checked_status(server, verdict=well(), generation=1)
    server.restart()
    assert [(message.level, bool(re.search(LANDED, message.text))) for message in messages(server.log())] == [("LOG", True)] * 2
    assert events(server) == [("start", "hugetlb", False)] * 2

    server.stop()
    borrowed.resize(0)
    at = len(server.log())
    server.start()
    assert_one(new_messages(server, at), "WARNING", LOST)
    [block] = messages(server.log()[at:])
    assert f"{needed} needed, {needed} missing, 0 available" in block.detail[1]
    assert "Cause: pool_empty (huge_pages = try)." in block.detail
    row = checked_status(server, verdict="warning", cause="pool_empty", landed_in="base", generation=1)
    assert row["hint"] == block.hint and f"nr_hugepages={needed}" in block.hint
    [loss] = server.sql("SELECT *, to_char(recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS at FROM hugepage_history WHERE regression")
    assert "the pool of 2 MB pages is empty" in row["message"]
    assert f"regressed at the start recorded at {loss['at']} UTC" in row["message"]
    assert (loss["event"], loss["was_landed_in"], loss["landed_in"], loss["cause"]) == ("start", "hugetlb", "base", "pool_empty")
    assert loss["was_recorded_at"] == history(server)[-2]["recorded_at"]

    at = len(server.log())
    server.restart()
    assert_one(new_messages(server, at), "WARNING", MISSED)
    checked_status(server, verdict="notice")
    assert len(server.sql("SELECT 1 FROM hugepage_history WHERE regression")) == 1

    # Who wants none of these lines has the server's own setting for it.
    server.conf(log_min_messages="error")
    borrowed.resize(needed)
    server.restart()
    server.stop()
    borrowed.resize(0)
    at = len(server.log())
    server.start()
    assert new_messages(server, at) == []
    assert len(server.sql("SELECT 1 FROM hugepage_history WHERE regression")) == 2


def test_log_base_pages_by_choice(new_cluster):
    """With huge_pages = off one line is logged."""
    server = new_cluster(**PRELOADED, huge_pages=False).start()
    assert_one(new_messages(server, 0), "LOG", r"^shared memory landed in 4 kB pages, as requested by huge_pages = off$")


def test_log_a_crash_restart(new_cluster, pool):
    """The same postmaster, the next generation, one WARNING; then a recovery."""
    server = new_cluster(**PRELOADED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    postmaster = server.postmaster
    borrowed.resize(0)
    assert server.crash(), server.log()
    assert server.postmaster == postmaster
    found = new_messages(server, 0)
    assert_one(found[:1], "LOG", LANDED)
    assert_one(found[1:], "WARNING", LOST)
    checked_status(server, verdict="warning", landed_in="base", cause="pool_empty", generation=2)
    assert events(server) == [("start", "hugetlb", False), ("crash restart", "base", True)]
    assert [row["generation"] for row in history(server)] == [1, 2]
    assert len({row["postmaster_start"] for row in history(server)}) == 1

    borrowed.resize(needed)
    at = len(server.log())
    assert server.crash(), server.log()
    assert_one(new_messages(server, at), "LOG", LANDED)
    await_answer(server)
    checked_status(server, verdict=well(), generation=3)


def test_warn_before_a_crash_restart_fails(new_cluster, pool):
    """huge_pages = on: the warning comes before the failure, and is in the history."""
    server = new_cluster(**WATCHED, huge_pages=True)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    await_worker(server)
    borrowed.resize(0)
    until("the warning", lambda: logged(server, "^the next start would fail", "WARNING"))
    checked_status(server, verdict="critical", restart_outlook="fails")
    assert events(server)[-1] == ("change", "hugetlb", True)
    assert not server.crash()
    log = server.log()
    assert log.index("the next start would fail") < log.index("could not map anonymous shared memory")
    assert len(logged(server, "", "WARNING")) == 1


def test_compare_after_other_shutdowns(new_cluster, pool):
    """An immediate shutdown keeps huge pages; a crash without a restart loses them at the next start."""
    server = new_cluster(**PRELOADED, restart_after_crash=False)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    server.stop("immediate")
    server.start()
    assert events(server) == [("start", "hugetlb", False)] * 2
    assert not server.crash()
    borrowed.resize(0)
    server.start()
    checked_status(server, verdict="warning", landed_in="base", generation=1)
    assert events(server)[2:] == [("start", "base", True)]
    assert [message.level for message in messages(server.log())] == ["LOG", "LOG", "WARNING"]


def test_repeat_for_the_logging_collector(new_cluster, pool):
    """The collector's file has each message once: the first from the worker, later ones from the postmaster."""
    server = new_cluster(**PRELOADED, logging_collector=True, log_filename="collected.log")
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    collected = server.data / "log" / "collected.log"
    pid = await_worker(server)
    assert_one(new_messages(server, 0), "LOG", LANDED)
    until("the block in the collector's file", lambda: messages(collected.read_text()))
    [block] = messages(collected.read_text())
    assert block.level == "LOG" and re.search(LANDED, block.text)
    borrowed.resize(0)
    assert server.crash(), server.log()
    await_worker(server, other_than=pid)
    found = [message for message in messages(collected.read_text()) if message.level == "WARNING"]
    assert len(found) == 1 and re.search(LOST, found[0].text)
    assert_one(new_messages(server, 0), "LOG", LANDED)


def test_preloaded_or_created_alone(new_cluster):
    """If preloaded, it needs no CREATE EXTENSION; if only created, it logs and records nothing."""
    server = new_cluster(**PRELOADED, huge_pages=False).start()
    await_worker(server)
    assert_one(new_messages(server, 0), "LOG", "^shared memory landed in 4 kB pages")
    assert len((server.data / "pg_hugepages.history").read_text().splitlines()) == 1

    (server.data / "pg_hugepages.history").unlink()
    server.conf(shared_preload_libraries="", **{"pg_hugepages.sample_interval": None})
    server.stop()
    at = len(server.log())
    create_extension(server.start())
    assert checked_status(server)["generation"] is None
    session = server.connect()
    assert rows(session, "SELECT * FROM hugepage_history") == [] and worker(server) is None
    assert session.notices == ["NOTICE:  pg_hugepages: nothing is recorded: pg_hugepages is not in shared_preload_libraries\n"]
    assert not (server.data / "pg_hugepages.history").exists() and new_messages(server, at) == []


def test_log_nothing_outside_a_server(new_cluster):
    """postgres -C and a single-user server load the library without effect."""
    server = new_cluster(**PRELOADED).start()
    await_worker(server)
    server.stop()
    kept = (server.data / "pg_hugepages.history").read_bytes()
    log = server.log()
    place = ["-D", str(server.data)]
    for arguments in (["-C", "shared_memory_size_in_huge_pages", *place], ["--single", *place, "postgres"]):
        command = shlex.join([str(server.install.bindir / "postgres"), *arguments])
        output = server.command("/bin/sh", "-c", f"exec {command} 2>&1")
        # A path may hold the word: the checkout's, the server's.
        assert re.findall(r"(?<![-./\w])\w*hugepage.*", output) == [], output
    assert (server.data / "pg_hugepages.history").read_bytes() == kept and server.log() == log


@pytest.mark.parametrize("mode", ["always"])
def test_report_no_regression_of_transparent_huge_pages(new_cluster, thp, mode):
    """They are allocated as memory is accessed, so a start always has fewer than the run before it."""
    thp(mode)
    server = new_cluster(**PRELOADED)
    create_extension(server.start())
    assert main_mapping(server.postmaster).landed_in in ("thp", "partial thp")
    for _ in range(2):
        server.restart()
    assert {row["regression"] for row in history(server)} == {False}
    assert logged(server, "regressed") == []
