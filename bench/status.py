"""What hugepage_status costs, beside its floor: the bare reads, and the call of a function that does nothing.

The same must come out whatever the number of sessions, the size of shared memory and the kind of its pages.
"""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import Cluster
from harness.kernel import meminfo
from harness.pool import Pool
from harness.processes import status_bytes
from harness.units import GB, MB
from servers import PAGES, Crowd, Skipped, server

QUERY = "SELECT * FROM {}"
SESSIONS = (1, 500)


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result for each size of shared memory, kind of pages and number of sessions."""
    for size in (128 * MB,) if quick else (128 * MB, 8 * GB):
        for pages in PAGES:
            case = {"shared_buffers": size, "pages": pages}
            try:
                with server(size, pages, max(SESSIONS), directory) as cluster:
                    crowd = Crowd(cluster)
                    for sessions in SESSIONS:
                        print(f"hugepage_status: {size // MB} MB, {pages} pages, {sessions} sessions", file=sys.stderr)
                        crowd.grow(sessions - 1)
                        yield {**case, "sessions": sessions, **one(cluster, directory, quick)}
            except Skipped as why:
                yield {**case, "skipped": str(why)}


def one(cluster: Cluster, directory: Path, quick: bool) -> dict[str, Any]:
    """All measurements on one server as it is; times in microseconds."""
    session = measure.Session(cluster, milliseconds=50 if quick else 100)
    session.query("SELECT touch_shared_buffers()")
    pool = Pool(meminfo()["Hugepagesize"]).directory
    transactions = 500 if quick else 1000

    turns = measure.in_turns({
        "ours": session.timer("ours", QUERY.format("hugepage_status")),
        "floor": lambda: measure.floor(directory / "floor", "status", transactions, pool),
        "empty": session.timer("empty", QUERY.format("one_row")),
        "no row": session.timer("no_row", QUERY.format("no_row")),
    }, turns=5 if quick else 15)
    clients = {
        protocol: measure.in_turns({
            name: lambda query=query, protocol=protocol: measure.pgbench(cluster, query, protocol, transactions)
            for name, query in (("select 1", "SELECT 1"), ("empty", QUERY.format("one_row")),
                                ("ours", QUERY.format("hugepage_status")))
        }, turns=3 if quick else 5)
        for protocol in ("prepared", "simple")
    }
    return {
        "microseconds": medians(turns),
        "ratio": measure.ratio(turns, "ours", "floor", "empty"),
        "pgbench": {protocol: medians(turns) for protocol, turns in clients.items()},
        "page_tables": status_bytes(session.pid, "VmPTE"),
    }


def medians(turns: measure.Turns) -> dict[str, float]:
    """The median over the turns, by name."""
    return {name: statistics.median(values) for name, values in turns.items()}
