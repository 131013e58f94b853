"""What a scrape costs the server: the queries of monitoring/exporters, parsed and planned each time as an exporter's are.

Each query is measured in turns with all of them one after another, which is a scrape.
"""

import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import rows
from harness.units import MB
from report import Results, Target, measured, milliseconds
from servers import PAGES, IdleSessions, Skipped, server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "monitoring" / "exporters"))

from queries import QUERIES, Query

SESSIONS, QUICK_SESSIONS = (1, 500), (1, 100)
SCRAPE = "scrape"
MOST_RATIO = 3.0


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result for each kind of pages and number of sessions."""
    counts = QUICK_SESSIONS if quick else SESSIONS
    for pages in PAGES:
        try:
            with server(128 * MB, pages, max(counts), directory) as cluster:
                idle_sessions = IdleSessions(cluster, touching=True)
                for sessions in counts:
                    print(f"a scrape: {pages} pages, {sessions} sessions", file=sys.stderr)
                    idle_sessions.grow(sessions - 1)
                    session = measure.Session(cluster, milliseconds=20 if quick else 60)
                    timers = {query.name: scrape(session, query.name, [query]) for query in QUERIES}
                    timers[SCRAPE] = scrape(session, SCRAPE, QUERIES)
                    turns = measure.in_turns(timers, turns=5 if quick else 11)
                    largest = max((query.name for query in QUERIES), key=lambda name: statistics.median(turns[name]))
                    yield {"pages": pages, "sessions": sessions, "largest": largest, "ratio": measure.ratio(turns, SCRAPE, largest),
                           "microseconds": {name: statistics.median(turns[name]) for name in (SCRAPE, largest)}}
        except Skipped as why:
            yield {"pages": pages, "skipped": str(why)}


def scrape(session: measure.Session, name: str, queries: list[Query]) -> Callable[[], float]:
    """What measures these queries together."""
    body = "".join(f"EXECUTE $sql${query.sql}$sql$;\n" for query in queries)
    rows(session.connection, f"CREATE FUNCTION pg_temp.once_{name}() RETURNS void LANGUAGE plpgsql AS $$BEGIN\n{body}END$$")
    return session.timer(name, f"SELECT pg_temp.once_{name}()")


def table(results: Results) -> str:
    """A row for each server."""
    lines = [f"{'pages  sessions  a scrape, ms  its largest query':<54}{'ms':>6}  scrape / largest"]
    for result in results:
        if "skipped" in result:
            lines.append(f"{result['pages']:>5}  not measured: {result['skipped']}")
            continue
        whole, largest = (milliseconds(result["microseconds"][name]) for name in (SCRAPE, result["largest"]))
        lines.append(f"{result['pages']:>5}  {result['sessions']:>8}  {whole:>12}  {result['largest']:<22}{largest:>6}  {result['ratio']:>16.2f}")
    return "\n".join(lines)


def targets(results: Results) -> list[Target]:
    """Of each number of sessions, in the kind of pages with the larger ratio."""
    largest: dict[int, float] = {}
    for result in measured(results):
        largest[result["sessions"]] = max(result["ratio"], largest.get(result["sessions"], 0))
    return [Target(f"a scrape / its largest query, {sessions} session{'s' * (sessions > 1)}", ratio, MOST_RATIO)
            for sessions, ratio in largest.items()]
