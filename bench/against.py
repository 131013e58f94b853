"""Two builds in turns: what this one takes, as a ratio to what another one takes. For use before a release.

Each build has its own server on the same CPU, with the same settings and sessions. A query runs on one and then on the
other, turn by turn, so that a noisy minute hits both.
"""

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measure
from harness.cluster import Cluster, Install
from harness.sidecar import PROGRAM
from harness.units import GB, MB
from servers import IdleSessions, Skipped, server

MOST_RATIO = 1.10
"""Beyond it the exit status is not zero."""

QUERIES = {
    "hugepage_status": "SELECT * FROM hugepage_status",
    "hugepage_backends": "SELECT count(*), sum(page_tables) FROM hugepage_backends",
    "hugepage_page_tables": "SELECT * FROM hugepage_page_tables",
    "hugepage_pools": "SELECT count(*) FROM hugepage_pools",
    "hugepage_segments": "SELECT count(*) FROM hugepage_segments",
    "hugepage_host": "SELECT count(*) FROM hugepage_host",
}


def rows_of(directory: Path, quick: bool, other: Install) -> Iterator[dict[str, Any]]:
    """One result for each query, and one for the sidecar; times in microseconds."""
    size, sessions = (128 * MB, 50) if quick else (GB, 500)
    try:
        with ExitStack() as stack:
            builds = {name: stack.enter_context(server(size, "base", sessions, directory, install=install))
                      for name, install in (("this", Install.find()), ("other", other))}
            for cluster in builds.values():
                stack.callback(IdleSessions(cluster, touching=True).grow(sessions - 1).close)
            yield from compared(builds, quick)
    except Skipped as why:
        yield {"skipped": str(why)}
    sidecars = {"this": Install.find().bindir / PROGRAM, "other": other.bindir / PROGRAM}
    runs = {name: lambda path=path: measure.program(3 if quick else 10, path, "status", "--format", "json")
            for name, path in sidecars.items()}
    yield result("hugepage-sidecar status", runs, quick)


def compared(builds: dict[str, Cluster], quick: bool) -> Iterator[dict[str, Any]]:
    """The queries on running servers, which are prepared for measurements."""
    sessions = {name: measure.Session(cluster, milliseconds=20 if quick else 100) for name, cluster in builds.items()}
    for view, query in QUERIES.items():
        print(f"against: {view}", file=sys.stderr)
        yield result(view, {name: session.timer("query", query) for name, session in sessions.items()}, quick)


def result(name: str, timers: dict[str, Callable[[], float]], quick: bool) -> dict[str, Any]:
    """The times of both, the median of the turns' ratios, and between what half of them lie."""
    turns = measure.in_turns(timers, turns=7 if quick else 21)
    ratios = [this / other for this, other in zip(turns["this"], turns["other"])]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {"name": name, "microseconds": {build: statistics.median(took) for build, took in turns.items()},
            "ratio": middle, "spread": [low, high]}


def exceeds(results: list[dict[str, Any]]) -> bool:
    """Whether anything takes more than a tenth longer than in the other build."""
    return any(result.get("ratio", 0) > MOST_RATIO for result in results)


def table(results: list[dict[str, Any]], revision: str) -> str:
    """For a terminal of 80 columns."""
    lines = [f"this build against {revision}, in turns: microseconds, medians; half of the ratios",
             f"lie within the spread; the bound is {MOST_RATIO:.2f}",
             f"{'':<26}{'this':>9}{'other':>9}  ratio  spread"]
    for result in results:
        if "skipped" in result:
            lines.append(f"skipped: {result['skipped']}")
            continue
        this, other = (result["microseconds"][build] for build in ("this", "other"))
        low, high = result["spread"]
        mark = "  slower" if result["ratio"] > MOST_RATIO else ""
        lines.append(f"{result['name']:<26}{this:9.0f}{other:9.0f}{result['ratio']:7.2f}  {low:.2f}-{high:.2f}{mark}")
    return "\n".join(lines)
