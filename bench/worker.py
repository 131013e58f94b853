"""What preloading costs: a longer start, the worker's CPU and its private memory.

Starts with and without the library are interleaved. The worker's CPU is what the kernel's scheduler has charged it with
over some minutes at the default interval, on a server that is left alone; its memory is held against the logical
replication launcher's, the nearest thing to an empty worker that every server has.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from harness.cluster import Cluster
from harness.preloaded import await_worker
from harness.processes import cpu_seconds
from harness.reserved_host import ReservedHost
from harness.signals import unwind_on_signals
from harness.status import EXTENSION
from harness.units import KB, MB

STARTS, QUICK_STARTS = 20, 5
MINUTES, QUICK_MINUTES = 10.0, 1.0
BOUNDS = {"start_ms": 10.0, "cpu_percent": 0.01, "memory": 4 * MB}
"""The most that is acceptable: milliseconds, hundredths of one core, bytes."""

EMPTY_WORKER = "logical replication launcher"


def rows_of(starts: int, minutes: float) -> Iterator[dict[str, Any]]:
    """One result."""
    with ReservedHost() as reserved_host:
        cluster = reserved_host.cluster(huge_pages=False, autovacuum=False)
        result = starting(cluster, starts)
    with lonely_server() as cluster:
        yield {"starts": starts, **result, **running(cluster, minutes)}


def starting(cluster: Cluster, starts: int) -> dict[str, float]:
    """Medians of the milliseconds until the server accepts connections, and their difference."""
    took: dict[str, list[float]] = {"": [], EXTENSION: []}
    for number in range(starts + 1):
        for library, times in took.items():
            cluster.conf(shared_preload_libraries=library)
            milliseconds = one_start(cluster)
            if number > 0:
                times.append(milliseconds)
    without, preloaded = (statistics.median(times) for times in took.values())
    return {"start_ms_without": without, "start_ms_with": preloaded, "start_ms": preloaded - without}


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
def lonely_server() -> Iterator[Cluster]:
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
    ours, theirs = private(pid), private(empty)
    return {"minutes": seconds / 60, "cpu_seconds": used, "cpu_percent": 100 * used / seconds,
            "memory_of_worker": ours, "memory_of_empty_worker": theirs, "memory": ours - theirs}


def private(pid: int) -> int:
    """Bytes that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * KB for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def exceeds(results: list[dict[str, Any]]) -> bool:
    """Whether something costs more than it may."""
    return any(result[name] > bound for result in results for name, bound in BOUNDS.items())


def table(results: list[dict[str, Any]]) -> str:
    """For a terminal of 80 columns."""
    [result] = results
    return "\n".join([
        "what preloading costs                       without      with    more   bound",
        f"start, milliseconds, medians of {result['starts']:<4}       {result['start_ms_without']:8.1f}  "
        f"{result['start_ms_with']:8.1f}{result['start_ms']:8.1f}{BOUNDS['start_ms']:8.0f}",
        f"private memory, kB: empty worker, ours      {result['memory_of_empty_worker'] / KB:7.0f}  "
        f"{result['memory_of_worker'] / KB:8.0f}{result['memory'] / KB:8.0f}{BOUNDS['memory'] / KB:8.0f}",
        f"CPU of the worker, % of a core, {result['minutes']:.1f} min                      "
        f"{result['cpu_percent']:8.4f}{BOUNDS['cpu_percent']:8.2f}",
    ])


def main() -> int:
    """Exit status 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=STARTS, metavar="N")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N")
    chosen = parser.parse_args()
    unwind_on_signals()
    results = list(rows_of(chosen.starts, chosen.minutes))
    print(table(results))
    return int(exceeds(results))


if __name__ == "__main__":
    sys.exit(main())
