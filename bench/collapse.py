"""What `hugepage-sidecar collapse` gives a running server, and what it costs meanwhile: page tables before and after, its time, and the
longest range, for which a session that touches it waits.

Each session has touched all of shared memory before. The sidecar is the one that `make install` has installed.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.lock import host_lock
from harness.processes import page_tables
from harness.sidecar import PROGRAM
from harness.shmem_thp import borrowed_shmem_thp
from harness.units import MB
from report import Results, measured, size
from servers import IdleSessions, Skipped, process_ids, server

SESSIONS = (20, 200, 1000)
SIZE, QUICK_SIZE = 512 * MB, 128 * MB
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
    """One server, aligned by `shmem_enabled` = advise at its start."""
    # The host's word is borrowed for the start, and given back when the server has stopped.
    with host_lock(), borrowed_shmem_thp("advise"), server(size, "base", sessions, directory) as cluster:
        idle = IdleSessions(cluster, touching=True).grow(sessions)
        before = page_tables(process_ids(cluster))
        begun = time.monotonic()
        program = cluster.install.bindir / PROGRAM
        done = subprocess.run([program, "collapse", "--instance", cluster.data, "--yes"], capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begun
        if done.returncode:
            raise Skipped(done.stderr.strip())
        made, ranges, median, longest = DONE.search(done.stdout).groups()
        result = {"size": size, "before": before, "after": page_tables(process_ids(cluster)), "seconds": seconds, "made": int(made),
                  "ranges": int(ranges), "median": median, "longest": longest}
        idle.close()
        return result


def table(results: Results) -> str:
    """Markdown."""
    lines = ["| sessions | page tables before | after | ranges of 2 MB | time | one range: median | longest |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for row in measured(results):
        lines.append(f"| {row['sessions']:,} | {size(row['before'])} | {size(row['after'])} | {row['made']} of {row['ranges']} | "
                     f"{row['seconds']:.1f} s | {row['median']} | {row['longest']} |")
    skipped = [f"Not measured with {row['sessions']:,} sessions: {row['skipped']}." for row in results if "skipped" in row]
    return "\n".join([*lines, *(f"\n{line}" for line in skipped)])
