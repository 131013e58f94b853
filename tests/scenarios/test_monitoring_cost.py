"""What a scrape costs the server: nothing that grows with its backends, page tables apart."""

import yaml

import pytest
from harness.cluster import rows
from harness.prometheus import MONITORING
from harness.status import create_extension
from harness.strace import traced

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

SESSIONS = 100
OF_BACKENDS = "hugepage_page_tables"


def test_a_scrape_opens_no_more_with_many_sessions_than_with_few(new_cluster, root):
    """Page tables are one file of each process; bench has the milliseconds."""
    server = create_extension(new_cluster(max_connections=SESSIONS + 20, autovacuum=False).start())
    queries = yaml.safe_load((MONITORING / "exporters/postgres_exporter.yaml").read_text())
    session = server.connect()

    def opened() -> dict[str, int]:
        """The files that each query opens in /proc, /sys and the data directory, once its plan and its look at files are cached."""
        counts = {}
        for name, query in queries.items():
            rows(session, query["query"])
            with traced(session.info.backend_pid, "openat") as trace:
                rows(session, query["query"])
                counts[name] = len(trace.lines(r"^openat\("))
        return counts

    few = opened()
    sessions = [server.connect() for _ in range(SESSIONS)]
    many = opened()
    assert many.pop(OF_BACKENDS) >= few.pop(OF_BACKENDS) + len(sessions)
    # Soon after a start a file may still be read each time, as it could change again within the same time of the file.
    assert many.keys() == few.keys() and sum(few.values()) > 0
    assert not {name: (few[name], number) for name, number in many.items() if number > few[name]}
