"""What a scrape costs the server: nothing that grows with its backends, page tables apart."""

import statistics

import yaml

import pytest
from harness.cluster import rows
from harness.prometheus import MONITORING
from harness.status import create_extension

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

SESSIONS = 500
STATUS = "SELECT * FROM hugepage_status"
OF_BACKENDS = "hugepage_page_tables"


def milliseconds(session, sql: str) -> float:
    """Planning and execution by the server's clock, as for a client that sends text."""
    [row] = rows(session, f"EXPLAIN (ANALYZE, TIMING OFF, SUMMARY ON, FORMAT JSON) {sql}")
    [plan] = row["QUERY PLAN"]
    return plan["Planning Time"] + plan["Execution Time"]


def test_a_scrape_beside_one_status(new_cluster):
    """All queries but that of page tables cost less than 30 looks at hugepage_status, which is a constant; bench has the
    milliseconds. With 500 backends as with few."""
    server = create_extension(new_cluster(max_connections=SESSIONS + 20).start())
    queries = yaml.safe_load((MONITORING / "exporters/postgres_exporter.yaml").read_text())
    cheap = [query["query"] for name, query in queries.items() if name != OF_BACKENDS]
    assert len(cheap) == len(queries) - 1
    session = server.connect()

    def in_statuses() -> float:
        """A scrape as so many looks at the status, each compared in its own turn."""
        return statistics.median(sum(milliseconds(session, sql) for sql in cheap) / milliseconds(session, STATUS)
                                 for _ in range(40))

    few = in_statuses()
    sessions = [server.connect() for _ in range(SESSIONS)]
    many = in_statuses()
    assert len(sessions) == SESSIONS
    assert many < 30
    assert many / few < 1.5
