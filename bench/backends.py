"""What hugepage_backends costs, beside the bare reads of /proc/PID/status, plain SQL and the peers.

Every session has touched all of shared_buffers, so that base pages cost each of them its own page tables.
"""

import math
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
import peers
import psycopg2
from harness.cluster import Cluster, Install
from harness.units import MB
from report import Results, Target, measured, milliseconds
from servers import PAGES, IdleSessions, Skipped, server

OURS, BARE = "hugepage_backends", "bare reads"
QUERIES = {
    OURS: "SELECT count(*), sum(page_tables) FROM hugepage_backends",
    BARE: "SELECT read_status_files()",
    **peers.PLAIN_SQL,
}
SESSIONS, QUICK_SESSIONS = (10, 100, 500, 5000), (10, 100)

SLOW = "pg_read_file, smaps_rollup"
"""Seconds at a time where the page tables are large: executed once."""

MOST_OF_BARE = 1.5


def rows_of(directory: Path, quick: bool, sessions: tuple[int, ...] = ()) -> Iterator[dict[str, Any]]:
    """One result for each kind of pages and number of sessions."""
    there, missing = peers.present(Install.find())
    for pages in PAGES:
        for count in sessions or (QUICK_SESSIONS if quick else SESSIONS):
            # With many sessions the page tables of base pages have no room, unless shared_buffers is small.
            case = {"pages": pages, "sessions": count, "size": 128 * MB if count <= 500 else 16 * MB}
            print(f"hugepage_backends: {pages} pages, {count} sessions", file=sys.stderr)
            try:
                with server(case["size"], pages, count, directory, peers.libraries(there)) as cluster:
                    peers.create(cluster, there)
                    idle_sessions = IdleSessions(cluster, touching=True).grow(count - 1)
                    yield {**case, **one(cluster, quick, there, missing)}
                    idle_sessions.close()
            except Skipped as why:
                yield {**case, "skipped": str(why)}


def one(cluster: Cluster, quick: bool, there: list[peers.Peer], missing: dict[str, str]) -> dict[str, Any]:
    """All measurements on one server as it is. A peer whose query fails joins the missing ones."""
    session = measure.Session(cluster, milliseconds=20 if quick else 60)
    session.query("SELECT touch_shared_buffers()")
    timers = {name: session.timer(name, query) for name, query in QUERIES.items() if name != SLOW}
    missing = dict(missing)
    timers |= {peer.extension: of_peer(session, peer, missing) for peer in there}
    turns = measure.in_turns(timers, turns=3 if quick else 7)
    turns = {name: took for name, took in turns.items() if name not in missing}
    times = {name: measure.ratio(turns, name, OURS) for name in turns if name not in (OURS, BARE)}
    microseconds = statistics.median(turns[OURS])
    return {"missing": missing, "microseconds": microseconds, "of_bare": measure.ratio(turns, OURS, BARE),
            "times": {**times, SLOW: session.once(SLOW, QUERIES[SLOW]) / microseconds}}


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


def table(results: Results) -> str:
    """A row for each peer, a column for each kind of pages and number of sessions."""
    columns = measured(results)
    lines = [row("pages", [result["pages"] for result in columns]),
             row("sessions", [result["sessions"] for result in columns]),
             row("hugepage_backends, ms", [milliseconds(result["microseconds"]) for result in columns]),
             row("/ bare reads", [f"{result['of_bare']:.2f}" for result in columns]),
             "others / hugepage_backends:"]
    for name in dict.fromkeys(name for result in columns for name in result["times"]):
        times = (result["times"].get(name) for result in columns)
        lines.append(row(f"  {name}", ["-" if time is None else f"{time:.2f}" if time < 10 else f"{time:.0f}" for time in times]))
    missing = {f"{extension}: not measured, {why}": None for result in columns for extension, why in result["missing"].items()}
    skipped = {f"{result['sessions']} sessions in {result['pages']} pages: not measured, {result['skipped']}": None
               for result in results if "skipped" in result}
    return "\n".join([*lines, *(line for text in missing | skipped for line in textwrap.wrap(text, 80, subsequent_indent="    "))])


def row(label: str, values: list[object]) -> str:
    """A line of the table."""
    return f"{label:<28}" + "".join(f"{value:>6}" for value in values)


def targets(results: Results) -> list[Target]:
    """Of all cases, the one that is nearest to its bound."""
    found = measured(results)
    if not found:
        return []
    fastest, name = min((time, name) for result in found for name, time in result["times"].items())
    return [Target("hugepage_backends / bare reads, the largest ratio", max(result["of_bare"] for result in found), MOST_OF_BARE),
            Target(f"the fastest of the others ({name}) / hugepage_backends, the smallest ratio", fastest, 1, is_least=True)]
