"""`hugepage-sidecar benefit`: what huge pages would save, observed on servers in base pages."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.processes import children, cpu_of_ends, page_tables, status_bytes
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.smaps import main_mapping, page_tables_of
from harness.units import MB

BASE = {"huge_pages": False, "autovacuum": False, "shared_buffers": "64MB"}

SIZE = 48 * MB
"""What each session touches."""


def observed(server: Cluster, interval: str = "100ms") -> dict[str, dict]:
    """The figures of the server by their names."""
    answer = sidecar.run("benefit", "--interval", interval, "--format", "json")
    assert answer.status == sidecar.OK, answer.stderr
    [instance] = [one for one in answer.json()["instances"] if one["pid"] == server.postmaster]
    return {row["figure"]: row for row in instance["figures"]}


def test_observe_sessions_that_begin_and_touch_all(new_cluster):
    server = new_cluster(**BASE).start()
    fill_shared_buffers(server, SIZE)
    touching = []
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(observed, server, "1500ms")
        while not answer.done() and len(touching) < 12:
            touching.append(server.connect())
            touch_all(touching[-1])
        found = answer.result()
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
    assert re.match(r"In the last 1\.[5-9] s|Not worth a restart", found["summary"]["detail"])


def with_touching_sessions(new_cluster):
    """A server in base pages, and five sessions that have touched all of shared buffers."""
    server = new_cluster(**BASE).start()
    fill_shared_buffers(server, SIZE)
    sessions = [server.connect() for _ in range(5)]
    for session in sessions:
        touch_all(session)
    return server, sessions


@pytest.mark.any_major
def test_the_end_of_a_session_takes_what_was_foretold(new_cluster):
    server, touching = with_touching_sessions(new_cluster)
    found = observed(server)
    plain = [server.connect() for _ in touching]
    # A session begins without the page tables that the postmaster, or any other process, has for shared memory.
    assert status_bytes(plain[0].info.backend_pid, "RssShmem") < SIZE / 4
    least, of_plain = (min(cpu_of_ends(server.postmaster, sessions)) for sessions in (touching, plain))
    predicted = found["exit"]["base"]
    # The speed of a busy machine changes from one moment to the next.
    assert predicted / 10 < least - of_plain < predicted * 10, (predicted, least, of_plain)
    assert server.sql("SELECT 1 AS up") == [{"up": 1}], "the postmaster goes on"


@pytest.mark.any_major
def test_page_tables_are_counted_from_outside(new_cluster):
    server, _sessions = with_touching_sessions(new_cluster)
    found = observed(server)
    pids, segment = [server.postmaster, *children(server.postmaster)], main_mapping(server.postmaster)
    remaining = page_tables(pids) - sum(page_tables_of(pid, segment) for pid in pids)
    assert found["page_tables"]["huge_2mb"] == pytest.approx(remaining, rel=0.2), "two of them stand for all"
    # max_connections is not visible from outside.
    assert found["page_tables_at_max_connections"]["base"] is None
    table = sidecar.run("benefit", "--interval", "100ms")
    assert "fault_cpu" in table.stdout and table.status == sidecar.OK
    assert max(map(len, table.stdout.splitlines())) <= 80
    csv = sidecar.run("benefit", "--interval", "100ms", "--format", "csv").csv()
    assert {row["figure"] for row in csv} == set(found)


@pytest.mark.any_major
def test_a_captured_host_cannot_be_observed(tmp_path):
    (tmp_path / "proc").mkdir()
    assert sidecar.run("--root", tmp_path, "benefit").status == sidecar.USAGE
    assert sidecar.run("benefit", "--interval", "1ms").status == sidecar.USAGE


def test_a_server_in_huge_pages_has_nothing_to_gain(new_cluster, pool):
    server = new_cluster(**{**BASE, "huge_pages": True})
    pool(2 * MB, server.pages_needed(2 * MB))
    [summary] = observed(server.start()).values()
    assert summary["figure"] == "summary"
    assert summary["detail"] == "Shared memory is in huge pages of 2 MB already: there is nothing to gain."
