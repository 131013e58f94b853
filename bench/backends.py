"""What hugepage_backends and hugepage_page_tables cost, beside the bare reads, pg_stat_activity and the peers.

Every session has touched all of shared_buffers, so that base pages cost each of them its own page tables.
"""

import math
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import peers
import psycopg2
from harness.cluster import Cluster, Install
from harness.poll import until
from harness.processes import status_bytes
from harness.units import GB, MB
from servers import PAGES, Crowd, Skipped, process_ids, server

OURS = "SELECT count(*), sum(page_tables) FROM hugepage_backends"
QUERIES = {
    "hugepage_backends": OURS,
    "hugepage_page_tables": "SELECT * FROM hugepage_page_tables",
    "hugepage_status": "SELECT * FROM hugepage_status",
    "pg_stat_activity": "SELECT count(*) FROM pg_stat_activity",
    **peers.PLAIN_SQL,
}
SESSIONS, QUICK_SESSIONS = [10, 100, 500, 5000], [10, 100, 500]
MANY = 1000
"""Beyond it shared_buffers is small."""

SLOW = "pg_read_file, smaps_rollup"
"""Seconds at a time where the page tables are large: executed once."""


def rows_of(directory: Path, quick: bool, sessions: list[int]) -> Iterator[dict[str, Any]]:
    """One result for each kind of pages and number of sessions."""
    there, missing = peers.present(Install.find())
    for extension, why in missing.items():
        print(f"bench: without {extension}: {why}", file=sys.stderr)
    many = [count for count in sorted(sessions) if count > MANY]
    for pages in PAGES:
        # Many sessions in base pages have more page tables than memory is there, unless shared_buffers is small.
        for size, counts in ((128 * MB if quick else GB, [count for count in sorted(sessions) if count <= MANY]), (128 * MB, many)):
            if not counts:
                continue
            case = {"shared_buffers": size, "pages": pages}
            try:
                with server(size, pages, max(counts), directory, peers.libraries(there)) as cluster:
                    peers.create(cluster, there)
                    crowd = Crowd(cluster, touching=True)
                    for count in counts:
                        print(f"hugepage_backends: {pages} pages, {count} sessions", file=sys.stderr)
                        crowd.grow(count - 1)
                        yield {**case, "sessions": count, **one(cluster, directory, quick, there, missing)}
            except Skipped as why:
                yield {**case, "skipped": f"{counts} sessions: {why}"}


def settled_page_tables(cluster: Cluster, session: measure.Session) -> dict[int, int]:
    """The page tables (bytes) of each of the server's processes, once the kernel and hugepage_backends name the same ones and
    none is about to end.
    """
    pids = process_ids(cluster)
    said = session.query("SELECT array_agg(pid ORDER BY pid) AS pids FROM hugepage_backends")["pids"]
    try:
        return {pid: status_bytes(pid, "VmPTE") for pid in pids} if said == sorted(pids) else {}
    except (FileNotFoundError, ProcessLookupError, KeyError):
        return {}


def one(cluster: Cluster, directory: Path, quick: bool, there: list[peers.Peer], missing: dict[str, str]) -> dict[str, Any]:
    """All measurements on one server as it is; times in microseconds. A peer whose query fails joins the missing ones."""
    session = measure.Session(cluster, milliseconds=20 if quick else 60)
    session.query("SELECT touch_shared_buffers()")
    page_tables = until("sessions that have ended to be gone", lambda: settled_page_tables(cluster, session))

    timers = {name: session.timer(name, query) for name, query in QUERIES.items() if name != SLOW}
    missing = dict(missing)
    timers |= {peer.extension: of_peer(session, peer, missing) for peer in there}
    times = max(5, (2000 if quick else 10000) // len(page_tables))
    timers["floor"] = lambda: measure.floor(directory / "floor", "backends", times, *page_tables)
    turns = measure.in_turns(timers, turns=5 if quick else 15)
    turns = {name: took for name, took in turns.items() if name not in missing}
    once = {SLOW: [session.once(SLOW, QUERIES[SLOW])]}
    return {
        "missing": missing,
        "processes": len(page_tables),
        "page_tables": sum(page_tables.values()),
        "microseconds": {name: statistics.median(values) for name, values in (turns | once).items()},
        "ratio": {view: measure.ratio(turns, view, "floor", "pg_stat_activity")
                  for view in ("hugepage_backends", "hugepage_page_tables")},
    }


def of_peer(session: measure.Session, peer: peers.Peer, missing: dict[str, str]) -> Callable[[], float]:
    """What measures a peer's query; with its first error the peer joins the missing ones."""
    timer: Callable[[], float] | None = None

    def timed() -> float:
        nonlocal timer
        if peer.extension not in missing:
            try:
                timer = timer or session.timer(peer.extension, peer.query)
                return timer()
            except psycopg2.Error as error:
                missing[peer.extension] = peers.reason(error)
        return math.nan

    return timed
