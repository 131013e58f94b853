"""What a scrape costs the server: the queries of monitoring/exporters, parsed and planned each time as an exporter's are.

All but one cost the same whatever the number of sessions; the page tables of each process are that one, and stand apart.
"""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import rows
from harness.units import MB
from servers import PAGES, Crowd, Skipped, server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "monitoring" / "exporters"))

from queries import QUERIES, Query

SESSIONS = (1, 500)
PARTS = {"all others": [query for query in QUERIES if not query.each_backend],
         "hugepage_page_tables": [query for query in QUERIES if query.each_backend]}


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result for each kind of pages and number of sessions; times in microseconds."""
    for pages in PAGES:
        try:
            with server(128 * MB, pages, max(SESSIONS), directory) as cluster:
                crowd = Crowd(cluster, touching=True)
                for sessions in SESSIONS:
                    print(f"a scrape: {pages} pages, {sessions} sessions", file=sys.stderr)
                    crowd.grow(sessions - 1)
                    session = measure.Session(cluster, milliseconds=50 if quick else 200)
                    timers = {part: scrape(session, at, part, queries)
                              for at, (part, queries) in enumerate(PARTS.items())}
                    turns = measure.in_turns(timers, turns=5 if quick else 15)
                    yield {"pages": pages, "sessions": sessions,
                           "microseconds": {part: statistics.median(took) for part, took in turns.items()}}
        except Skipped as why:
            yield {"pages": pages, "skipped": str(why)}


def scrape(session: measure.Session, at: int, part: str, queries: list[Query]) -> Any:
    """What measures these queries together."""
    body = "".join(f"EXECUTE $sql${query.sql}$sql$;\n" for query in queries)
    rows(session.connection, f"CREATE FUNCTION pg_temp.scrape{at}() RETURNS void LANGUAGE plpgsql AS $$BEGIN\n{body}END$$")
    return session.timer(part, f"SELECT pg_temp.scrape{at}()")


def table(results: list[dict[str, Any]]) -> str:
    """A row for each server."""
    lines = ["a scrape, in the server: milliseconds, medians", "pages  sessions  " + "  ".join(PARTS)]
    for result in results:
        if "skipped" in result:
            lines.append(f"{result['pages']:>5}  skipped: {result['skipped']}")
            continue
        cells = (f"{result['microseconds'][part] / 1000:{len(part)}.2f}" for part in PARTS)
        lines.append(f"{result['pages']:>5}  {result['sessions']:8}  {'  '.join(cells)}")
    return "\n".join(lines)
