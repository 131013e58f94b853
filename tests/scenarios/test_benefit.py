"""hugepage_benefit() and `hugepage-sidecar benefit`: what huge pages would save, observed on servers in base pages."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from harness import sidecar
from harness.cluster import rows
from harness.poll import SLOWER, until
from harness.processes import children, cpu_of_ends, page_tables, status_bytes
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.smaps import main_mapping, page_tables_of
from harness.status import create_extension
from harness.units import MB

BASE = {"huge_pages": False, "autovacuum": False, "shared_buffers": "64MB"}

SIZE = 48 * MB
"""What each session touches."""


def by_figure(found: list[dict]) -> dict[str, dict]:
    """The rows by their names."""
    return {row["figure"]: row for row in found}


def test_observe_sessions_that_begin_and_touch_all(new_cluster):
    server = create_extension(new_cluster(**BASE).start())
    fill_shared_buffers(server, SIZE)
    observer, touching = server.connect(), []
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(rows, observer, "SELECT * FROM hugepage_benefit('1500 ms')")
        while not answer.done() and len(touching) < 12:
            touching.append(server.connect())
            touch_all(touching[-1])
        found = by_figure(answer.result())
    faults, warm_up, tables = found["fault_cpu"], found["warm_up"], found["page_tables"]
    assert faults["base"] > 10 * faults["huge_2mb"] >= 10 * faults["huge_1gb"] > 0
    assert warm_up["base"] > 10 * warm_up["huge_2mb"] > 0
    assert found["exit"]["base"] > found["exit"]["huge_2mb"] > 0
    assert (found["fork"]["base"], found["fork"]["huge_2mb"]) == (0, 0)
    assert {faults["confidence"], warm_up["confidence"]} <= {"measured", "modelled"}
    pids = [server.postmaster, *children(server.postmaster)]
    assert 0 < tables["huge_1gb"] <= tables["huge_2mb"] < tables["base"]
    assert tables["base"] == pytest.approx(page_tables(pids), rel=0.3), "sessions may have begun since"
    assert found["page_tables_per_session"]["base"] >= SIZE // 512
    assert found["summary"]["detail"].startswith(("In the last 1.5 s", "Not worth a restart"))


def with_touching_sessions(new_cluster):
    """A server in base pages, and five sessions that have touched all of shared buffers."""
    server = create_extension(new_cluster(**BASE).start())
    fill_shared_buffers(server, SIZE)
    sessions = [server.connect() for _ in range(5)]
    for session in sessions:
        touch_all(session)
    return server, sessions


@pytest.mark.any_major
def test_the_end_of_a_session_takes_what_was_foretold(new_cluster):
    server, touching = with_touching_sessions(new_cluster)
    found = by_figure(server.sql("SELECT * FROM hugepage_benefit('100 ms')"))
    plain = [server.connect() for _ in touching]
    # A session begins without the page tables that the postmaster, or any other process, has for shared memory.
    assert status_bytes(plain[0].info.backend_pid, "RssShmem") < SIZE / 4
    least, of_plain = (min(cpu_of_ends(server.postmaster, sessions)) for sessions in (touching, plain))
    predicted = found["exit"]["base"]
    # The speed of a busy machine changes from one moment to the next.
    assert predicted / 10 < least - of_plain < predicted * 10, (predicted, least, of_plain)
    assert server.sql("SELECT 1 AS up") == [{"up": 1}], "the postmaster goes on"


def test_the_duration_is_bounded(new_cluster):
    server = create_extension(new_cluster(**BASE).start())
    session = server.connect()
    for duration in ("10 ms", "-1 s", "60001 ms", "1 h", "1 month"):
        with pytest.raises(psycopg2.errors.InvalidParameterValue) as error:
            rows(session, "SELECT * FROM hugepage_benefit(%s)", duration)
        assert "100 ms and 1 min" in error.value.diag.message_detail
        assert "hugepage-sidecar benefit" in error.value.diag.message_hint
    # The session is as good as before.
    found = by_figure(rows(session, "SELECT * FROM hugepage_benefit(duration => '100 ms')"))
    assert found["page_tables"]["confidence"] == "measured"
    assert "notes" not in found and rows(session, "SELECT notes FROM hugepage_status")[0]["notes"] is not None


def test_the_wait_ends_at_once(new_cluster):
    """By a timeout, a cancel and the end of the session. Until then it holds a snapshot."""
    server = create_extension(new_cluster(**BASE).start())
    session = server.connect()
    pid, observe = session.info.backend_pid, "SELECT * FROM hugepage_benefit('1 min')"
    waits = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Extension' AND backend_xmin IS NOT NULL"
    rows(session, "SET statement_timeout = '200ms'")
    begun = time.monotonic()
    with pytest.raises(psycopg2.errors.QueryCanceled):
        rows(session, observe)
    assert time.monotonic() - begun < 5 * SLOWER
    rows(session, "SET statement_timeout = 0")
    for ends, error in (("pg_cancel_backend", psycopg2.errors.QueryCanceled), ("pg_terminate_backend", psycopg2.OperationalError)):
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(rows, session, observe)
            until("the observation to begin", lambda: server.sql(waits, pid))
            begun = time.monotonic()
            server.sql(f"SELECT {ends}(%s)", pid)
            assert isinstance(answer.exception(), error), ends
            assert time.monotonic() - begun < 5 * SLOWER, ends
    assert "terminating connection due to administrator command" in server.log()
    assert server.sql("SELECT 1 AS up") == [{"up": 1}]


@pytest.mark.any_major
def test_the_sidecar_says_the_same_from_outside(new_cluster):
    server, _sessions = with_touching_sessions(new_cluster)
    observer = server.connect()
    inside = by_figure(rows(observer, "SELECT * FROM hugepage_benefit('100 ms')"))
    answer = sidecar.run("benefit", "--interval", "100ms", "--format", "json")
    assert answer.status == sidecar.OK, answer.stderr
    [instance] = [one for one in answer.json()["instances"] if one["pid"] == server.postmaster]
    outside = by_figure(instance["figures"])
    assert outside.keys() == inside.keys()
    for figure in ("page_tables", "page_tables_freed", "page_tables_per_session"):
        assert outside[figure]["huge_2mb"] == pytest.approx(inside[figure]["huge_2mb"], rel=0.1), figure
    pids, segment = [server.postmaster, *children(server.postmaster)], main_mapping(server.postmaster)
    remaining = page_tables(pids) - sum(page_tables_of(pid, segment) for pid in pids)
    assert inside["page_tables"]["huge_2mb"] == pytest.approx(remaining, rel=0.2), "two of them stand for all"
    # max_connections is not visible from outside.
    assert outside["page_tables_at_max_connections"]["base"] is None
    table = sidecar.run("benefit", "--interval", "100ms")
    assert "fault_cpu" in table.stdout and table.status == sidecar.OK
    assert max(map(len, table.stdout.splitlines())) <= 80
    csv = sidecar.run("benefit", "--interval", "100ms", "--format", "csv").csv()
    assert {row["figure"] for row in csv} == set(inside)


@pytest.mark.any_major
def test_a_captured_host_cannot_be_observed(tmp_path):
    (tmp_path / "proc").mkdir()
    assert sidecar.run("--root", tmp_path, "benefit").status == sidecar.USAGE
    assert sidecar.run("benefit", "--interval", "1ms").status == sidecar.USAGE


def test_a_server_in_huge_pages_has_nothing_to_gain(new_cluster, pool):
    server = new_cluster(**{**BASE, "huge_pages": True})
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    [summary] = server.sql("SELECT * FROM hugepage_benefit('100 ms')")
    assert summary["figure"] == "summary"
    assert summary["detail"] == "Shared memory is in huge pages of 2 MB already: there is nothing to gain."
