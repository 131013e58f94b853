"""What hugepage_status costs, as a ratio to `SELECT count(*) FROM pg_stat_activity` with 100 sessions.

Each server that is measured runs beside the one that pg_stat_activity is asked on, and both queries are executed in turns. So
the ratios of all cases can be compared with each other.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import Cluster
from harness.poll import until
from harness.status import EXTENSION
from harness.units import GB, MB
from report import Results, Target, measured, size
from servers import PAGES, IdleSessions, Skipped, server

OURS = "SELECT * FROM hugepage_status"
ACTIVITY = "SELECT count(*) FROM pg_stat_activity"

SMALL, LARGE = 128 * MB, 12 * GB
SESSIONS = 100
FEWEST, MOST = 1, 5000

PRELOADED = {"no": "", "yes": EXTENSION}

RELOADED: dict[str, Callable[[Cluster], None]] = {
    "another work_mem": lambda cluster: cluster.conf(work_mem="5MB"),
    "another shared_buffers": lambda cluster: cluster.conf(shared_buffers="64MB"),
    "a file dated tomorrow": lambda cluster: os.utime(cluster.data / "harness.conf", (time.time() + 86400,) * 2),
}
"""What is done to the configuration files before a reload, one after the other. The next start differs from the second on."""

MOST_RATIO, MOST_SPREAD = 2.0, 1.2


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """A result for each case; `what` names it."""
    most, large = (200, 256 * MB) if quick else (MOST, LARGE)
    try:
        with server(SMALL, "base", SESSIONS, directory, touching=False) as reference:
            idle_sessions = IdleSessions(reference).grow(SESSIONS - 1)
            activity = session_of(reference, quick).timer("activity", ACTIVITY)
            for pages in PAGES:
                for preloaded in PRELOADED:
                    for size_of, counts in ((SMALL, (FEWEST, most)), (SMALL, (SESSIONS,)), (large, (SESSIONS,))):
                        case = {"pages": pages, "preloaded": preloaded, "size": size_of}
                        try:
                            for row in of_server(case, counts, directory, quick, activity):
                                yield {**case, **row}
                        except Skipped as why:
                            yield {**case, "skipped": str(why)}
            assert idle_sessions.size == SESSIONS - 1    # sessions that nobody refers to have ended
    except Skipped as why:
        yield {"skipped": str(why)}


def of_server(case: dict[str, Any], counts: tuple[int, ...], directory: Path, quick: bool,
              activity: Callable[[], float]) -> Iterator[dict[str, Any]]:
    """One server with so many sessions, and reloaded if it is a small one with 100."""
    with server(case["size"], case["pages"], max(counts), directory, PRELOADED[case["preloaded"]], touching=False) as cluster:
        idle_sessions, session = IdleSessions(cluster), session_of(cluster, quick)

        def row(what: str, **details: int) -> dict[str, Any]:
            print(f"hugepage_status: {case['pages']} pages, preloaded: {case['preloaded']}, {what}", file=sys.stderr)
            turns = measure.in_turns({"ours": session.timer("ours", OURS), "activity": activity}, turns=5 if quick else 11)
            return {"what": what, **details, "ratio": measure.ratio(turns, "ours", "activity"),
                    "microseconds": {name: statistics.median(took) for name, took in turns.items()}}

        for count in counts:
            idle_sessions.grow(count - 1)
            yield row(f"{count} session{'s' * (count > 1)}" if case["size"] == SMALL else size(case["size"]), sessions=count)
        if (case["size"], counts) == (SMALL, (SESSIONS,)):
            for what, change in RELOADED.items():
                change(cluster)
                reload(cluster, session)
                yield row(f"reloaded, {what}")


def session_of(cluster: Cluster, quick: bool) -> measure.Session:
    """A session that has touched all of shared_buffers."""
    session = measure.Session(cluster, milliseconds=20 if quick else 100)
    session.query("SELECT touch_shared_buffers()")
    return session


def reload(cluster: Cluster, session: measure.Session) -> None:
    """Reload the configuration, and wait until this session has read it."""
    loaded_at = session.query("SELECT pg_conf_load_time() AS at")["at"]
    cluster.sql("SELECT pg_reload_conf()")
    until("the session to reload", lambda: session.query("SELECT pg_conf_load_time() AS at")["at"] > loaded_at)


def table(results: Results) -> str:
    """A row for each case, a column for each kind of pages and of loading."""
    found = measured(results)
    columns = [(pages, preloaded) for pages in PAGES for preloaded in PRELOADED]
    lines = ["hugepage_status / SELECT count(*) FROM pg_stat_activity with 100 sessions",
             f"{'pages':<34}" + "".join(f"{pages:>10}" for pages, _preloaded in columns),
             f"{'preloaded':<34}" + "".join(f"{preloaded:>10}" for _pages, preloaded in columns)]
    for what in dict.fromkeys(result["what"] for result in sorted(found, key=order)):
        cells = {(result["pages"], result["preloaded"]): f"{result['ratio']:.2f}" for result in found if result["what"] == what}
        lines.append(f"{what:<34}" + "".join(f"{cells.get(column, '-'):>10}" for column in columns))
    if found:
        took = statistics.median(result["microseconds"]["activity"] for result in found)
        lines += [f"{size(SMALL)} and {SESSIONS} sessions where nothing else is said",
                  f"pg_stat_activity took {took:.0f} microseconds"]
    return "\n".join([*lines, *dict.fromkeys(f"not measured: {result['skipped']}" for result in results if "skipped" in result)])


def order(result: dict[str, Any]) -> tuple[int, int]:
    """The place of its row: by sessions, by size, then those that were reloaded."""
    return (result["size"], result["sessions"]) if "sessions" in result else (sys.maxsize, 0)


def targets(results: Results) -> list[Target]:
    """Of all cases; and of those that differ in sessions or size alone, how far they are apart."""
    found = measured(results)
    flat = [result for result in found if "sessions" in result]
    if not flat:
        return []
    ratios = [[result["ratio"] for result in flat if (result["pages"], result["preloaded"]) == column]
              for column in {(result["pages"], result["preloaded"]) for result in flat}]
    sessions, sizes = ([result[name] for result in flat] for name in ("sessions", "size"))
    return [
        Target("the largest ratio", max(result["ratio"] for result in found), MOST_RATIO),
        Target(f"largest / smallest ratio of a column from {min(sessions)} to {max(sessions)} sessions and {size(min(sizes))} to "
               f"{size(max(sizes))}", max(max(column) / min(column) for column in ratios), MOST_SPREAD),
    ]
