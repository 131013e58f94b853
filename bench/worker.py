"""What preloading costs: a longer start, the worker's CPU and its private memory.

Starts with and without the library are interleaved. The worker's CPU is what the kernel's scheduler has charged it with
over some minutes at the default interval, on a server that is left alone; its memory is held against the logical
replication launcher's, the nearest thing to an empty worker that every server has.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.cluster import Cluster
from harness.preloaded import await_worker
from harness.processes import cpu_seconds
from harness.reserved_host import ReservedHost
from harness.status import EXTENSION
from harness.units import KB, MB
from report import Results, Target

STARTS, QUICK_STARTS = 20, 5
MINUTES, QUICK_MINUTES = 2.0, 0.2
EMPTY_WORKER = "logical replication launcher"


def rows_of(_directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result."""
    starts, minutes = (QUICK_STARTS, QUICK_MINUTES) if quick else (STARTS, MINUTES)
    with ReservedHost() as reserved_host:
        cluster = reserved_host.cluster(huge_pages=False, autovacuum=False)
        result = starting(cluster, starts)
    with server_in_base_pages() as cluster:
        yield {"starts": starts, **result, **running(cluster, minutes)}


def starting(cluster: Cluster, starts: int) -> dict[str, float]:
    """Medians of the milliseconds until the server accepts connections, and of their difference in each turn."""
    took: dict[str, list[float]] = {"": [], EXTENSION: []}
    for number in range(starts + 1):
        for library, times in took.items():
            cluster.conf(shared_preload_libraries=library)
            milliseconds = one_start(cluster)
            if number > 0:
                times.append(milliseconds)
    without, preloaded = (statistics.median(times) for times in took.values())
    return {"start_ms_without": without, "start_ms_with": preloaded, "start_ms": statistics.median(b - a for a, b in zip(*took.values()))}


def one_start(cluster: Cluster) -> float:
    """Milliseconds from the call of the program until it says that it is ready; the server is stopped again."""
    command = ["-D", str(cluster.data), "-k", str(cluster.root)]
    cluster.log_file.unlink(missing_ok=True)
    begin = time.perf_counter()
    cluster.command("/bin/sh", "-c", 'log=$1; shift; exec setsid "$@" >"$log" 2>&1 </dev/null &', "sh", cluster.log_file,
                    cluster.install.bindir / "postgres", *command)
    while "ready to accept connections" not in cluster.log():
        # A tenth of what is to be told apart, at the most; until() would wait longer and longer.
        time.sleep(0.0002)
        assert time.perf_counter() < begin + 60, cluster.log()
    milliseconds = (time.perf_counter() - begin) * 1000
    cluster.stop()
    return milliseconds


@contextmanager
def server_in_base_pages() -> Iterator[Cluster]:
    """A server with the library and its default settings, in base pages, so that the lock of the host is not held."""
    with Cluster(huge_pages=False, autovacuum=False, shared_preload_libraries=EXTENSION) as cluster:
        yield cluster.start()


def running(cluster: Cluster, minutes: float) -> dict[str, float]:
    """CPU and memory of the worker."""
    pid = await_worker(cluster)
    before, begin = cpu_seconds(pid), time.monotonic()
    # What is measured is what the worker does while nobody does anything.
    time.sleep(minutes * 60)
    seconds = time.monotonic() - begin
    empty = cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = %s", EMPTY_WORKER)[0]["pid"]
    used = cpu_seconds(pid) - before
    of_worker, of_empty_worker = private(pid), private(empty)
    return {"minutes": seconds / 60, "cpu_seconds": used, "cpu_percent": 100 * used / seconds,
            "memory_of_worker": of_worker, "memory_of_empty_worker": of_empty_worker, "memory": of_worker - of_empty_worker}


def private(pid: int) -> int:
    """Bytes that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * KB for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def targets(results: Results) -> list[Target]:
    """Of each of the three."""
    return [target for result in results for target in (
        Target(f"a start of {result['start_ms_without']:.0f} ms becomes longer, ms", result["start_ms"], 10),
        Target("private memory of the worker beyond an empty one, MB", result["memory"] / MB, 4),
        Target(f"CPU of the worker on an idle server for {result['minutes']:.1f} min, % of a CPU", result["cpu_percent"], 0.01),
    )]
