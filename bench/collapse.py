"""What `hugepage-sidecar collapse` gives a running server, beside 4 kB pages and the pool: page tables, a login, random reads. And what it
costs meanwhile: its time, the longest range, for which a session that touches it waits, and the reads that go on beside it.

Each session has touched all of shared memory before. The sidecar is the one that `make install` has installed.
"""

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness.cluster import Cluster
from harness.lock import host_lock
from harness.poll import until
from harness.sidecar import PROGRAM
from harness.shmem_thp import borrowed_shmem_thp
from harness.units import MB
from headlines import hits_per_second, login, make_table, tables
from report import Results, measured, size
from servers import IdleSessions, Skipped, server

SESSIONS = (20, 200, 1000)
SIZE, QUICK_SIZE = 512 * MB, 128 * MB
LOGINS, SECONDS = 5, 2.0
"""Of each kind of pages: so many logins, of which the median counts, and reads for so long."""
DONE = re.compile(r"(\d+) of (\d+) ranges are huge pages now; one took (\S+) \(median\), (\S+) at most")


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """A result for each number of sessions; one that has `skipped` says why there is none."""
    for sessions in SESSIONS[:1] if quick else SESSIONS:
        print(f"hugepage-sidecar collapse: {sessions} sessions", file=sys.stderr)
        try:
            yield {"sessions": sessions, **one(QUICK_SIZE if quick else SIZE, sessions, directory)}
        except Skipped as why:
            yield {"sessions": sessions, "skipped": str(why)}


def one(size: int, sessions: int, directory: Path) -> dict[str, Any]:
    """One server that is collapsed, aligned by `shmem_enabled` = advise at its start, and one in the pool."""
    result: dict[str, Any] = {"size": size, "pages": {}}
    for pages in ("base", "huge"):
        with ExitStack() as stack:
            # The host's word is borrowed for the start, and given back when the server has stopped.
            stack.enter_context(host_lock())
            stack.enter_context(borrowed_shmem_thp("advise"))
            cluster = stack.enter_context(server(size, pages, sessions, directory))
            make_table(cluster, size)
            idle = IdleSessions(cluster, touching=True).grow(sessions)
            result["pages"][pages] = state(cluster, size)
            if pages == "base":
                result |= collapsed(cluster, size)
                result["pages"]["collapsed"] = state(cluster, size)
            idle.close()
    return result


def state(cluster: Cluster, size: int) -> dict[str, float]:
    """What a server's pages cost and give."""
    return {"page_tables": until("all processes to stay", lambda: tables(cluster)), "login": statistics.median(login(cluster) for _ in range(LOGINS)),
            "hits": hits_per_second(cluster, size, SECONDS)}


def collapsed(cluster: Cluster, size: int) -> dict[str, Any]:
    """Collapse it, with reads beside it as long as it lasts."""
    begun = time.monotonic()
    collapse = subprocess.Popen([cluster.install.bindir / PROGRAM, "collapse", "--instance", cluster.data, "--yes"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    hits = hits_per_second(cluster, size, SECONDS)
    lasted = collapse.poll() is None
    output, errors = collapse.communicate()
    if collapse.returncode:
        raise Skipped(errors.strip())
    made, ranges, median, longest = DONE.search(output).groups()
    return {"seconds": time.monotonic() - begun, "made": int(made), "ranges": int(ranges), "median": median, "longest": longest,
            "hits_meanwhile": hits if lasted else None}


def table(results: Results) -> str:
    """Markdown."""
    names = {"base": "4 kB", "collapsed": "collapsed", "huge": "2 MB, of the pool"}
    states = ["| sessions | pages | page tables | login | hits |", "| --- | --- | --- | --- | --- |"]
    costs = ["| sessions | ranges of 2 MB | time | one range: median | longest | hits meanwhile |", "| --- | --- | --- | --- | --- | --- |"]
    for row in measured(results):
        for pages, name in names.items():
            found = row["pages"][pages]
            states.append(f"| {row['sessions']:,} | {name} | {size(found['page_tables'])} | {found['login'] * 1e3:.3g} ms | {rate(found['hits'])} |")
        costs.append(f"| {row['sessions']:,} | {row['made']} of {row['ranges']} | {row['seconds']:.1f} s | {row['median']} | {row['longest']} | "
                     f"{rate(row['hits_meanwhile'])} |")
    skipped = [f"\nNot measured with {row['sessions']:,} sessions: {row['skipped']}." for row in results if "skipped" in row]
    return "\n".join([*states, "", *costs, *skipped])


def rate(hits: float | None) -> str:
    """Thousands of pages in a second; `-`: the collapse ended earlier."""
    return "-" if hits is None else f"{hits / 1000:,.0f} thousand/s"
