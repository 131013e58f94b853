"""What hugepage_status costs, beside its floor: the same system calls, and the call of a function that does nothing.

The time falls into three parts: what the kernel takes for the pages and their pool, the other system calls that an answer
needs, and our own work. The same must come out whatever the number of sessions, the size of shared memory and the kind of
its pages.
"""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import Cluster
from harness.kernel import open_files
from harness.processes import status_bytes
from harness.units import GB, MB
from servers import PAGES, Crowd, Skipped, server

QUERY = "SELECT * FROM {}"
SESSIONS = (1, 500)
SIZES, QUICK_SIZES = (128 * MB, GB, 4 * GB, 8 * GB, 12 * GB), (128 * MB,)
OF_POOL = ("/meminfo", "/nr_overcommit_hugepages")


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result for each size of shared memory, kind of pages and number of sessions."""
    for size in QUICK_SIZES if quick else SIZES:
        for pages in PAGES:
            case = {"shared_buffers": size, "pages": pages}
            try:
                with server(size, pages, max(SESSIONS), directory, touching=False) as cluster:
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
    session.query(QUERY.format("hugepage_status"))
    every, configuration = kept_files(session.pid), configuration_files(cluster)
    transactions = 500 if quick else 1000

    def floor(what: str, files: list[str], *statted: object) -> float:
        return measure.floor(directory / "floor", what, transactions, *files, *statted)

    turns = measure.in_turns({
        "ours": session.timer("ours", QUERY.format("hugepage_status")),
        "kernel": lambda: floor("kept", [path for path in every if path.endswith(OF_POOL)]),
        "floor": lambda: floor("kept", every, "--", *configuration),
        "opened": lambda: floor("opened", every, "--", *configuration),
        "empty": session.timer("empty", QUERY.format("one_row")),
        "at once": session.timer("at_once", QUERY.format("at_once")),
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
        "strict": measure.ratio(turns, "ours", "floor", "at once"),
        "pgbench": {protocol: medians(turns) for protocol, turns in clients.items()},
        "page_tables": status_bytes(session.pid, "VmPTE"),
    }


def kept_files(pid: int) -> list[str]:
    """The kernel's files that a backend keeps open to answer, without its own maps; the pool's first."""
    kept = [path for path in open_files(pid) if path.startswith(("/proc/", "/sys/")) and not path.endswith("/maps")]
    assert any(path.endswith(OF_POOL) for path in kept), kept
    return sorted(kept, key=lambda path: not path.endswith(OF_POOL))


def configuration_files(cluster: Cluster) -> list[Path]:
    """What tells whether the next start could be another one: each is asked for its time stamps."""
    files = [cluster.data / f"{name}.conf" for name in ("postgresql", "harness", "postgresql.auto")]
    files += [cluster.data / f"{name}.signal" for name in ("standby", "recovery")]
    return [*files, cluster.install.bindir / "postgres", Path(cluster.install.ask("pkglibdir"))]


def medians(turns: measure.Turns) -> dict[str, float]:
    """The median over the turns, by name."""
    return {name: statistics.median(values) for name, values in turns.items()}
