"""A server that preloads the library: its settings, its worker, and the rows of its history."""

import os
import signal
from typing import Any

from harness.cluster import Cluster
from harness.poll import until
from harness.processes import waits_so_far
from harness.status import EXTENSION
from harness.strace import traced

PRELOADED = {"shared_preload_libraries": EXTENSION, f"{EXTENSION}.sample_interval": 0}
"""Settings of a server that preloads the library; its worker takes no samples by itself."""

WATCHED = {**PRELOADED, f"{EXTENSION}.sample_interval": 1}
"""The same with a worker that takes a sample every second."""


def worker(cluster: Cluster) -> int | None:
    """The worker's pid, None if it does not run."""
    found = cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = %s", EXTENSION)
    return found[0]["pid"] if found else None


def await_worker(cluster: Cluster, other_than: int | None = None) -> int:
    """The worker's pid once it runs and has trimmed the history file; with `other_than` the pid of its successor.

    The postmaster starts one a minute after the first has ended, and at once after a crash.
    """
    pid = until("the worker", lambda: worker(cluster) not in (None, other_than) and worker(cluster), seconds=90)
    idle = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'Extension'"
    until("the worker to be idle", lambda: cluster.sql(idle, pid))
    return pid


def await_answer(cluster: Cluster) -> None:
    """Wait until the asker, which the worker starts at most once a sample, has answered: on the next boot, and on the
    configuration on disk if only the server's program can tell what that comes to."""
    waits = """SELECT 1 FROM hugepage_status
               WHERE boot_outlook IS NULL OR array_to_string(notes, ' ') LIKE '%the worker asks the server''s program%'"""
    until("the answer of the server's program", lambda: not cluster.sql(waits), seconds=90)


def await_samples(cluster: Cluster, times: int) -> None:
    """Have the worker take this many more samples: whenever its latch is set, by itself or by this signal (procsignal.c), it does."""
    pid = worker(cluster)

    def has_taken_them() -> bool:
        os.kill(pid, signal.SIGUSR1)
        return len(trace.lines('"/proc/meminfo"')) >= times

    with traced(pid, "openat") as trace:
        until(f"{times} samples of the worker", has_taken_them)


def await_rounds(pid: int, times: int) -> None:
    """Wait until the worker has gone to sleep so many times more, without touching it: it may hang."""
    before = waits_so_far(pid)
    until(f"{times} rounds of the worker", lambda: waits_so_far(pid) >= before + times)


def history(cluster: Cluster) -> list[dict[str, Any]]:
    """The rows of hugepage_history."""
    return cluster.sql("SELECT * FROM hugepage_history")


def events(cluster: Cluster) -> list[tuple[str, str, bool]]:
    """Event, landed_in and regression of each row of hugepage_history."""
    return [(row["event"], row["landed_in"], row["regression"]) for row in history(cluster)]
