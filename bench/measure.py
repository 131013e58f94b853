"""How anything here is timed: on one CPU, in turns, medians of medians.

Everything runs on the same CPU, so that no time goes into waking up another one. What is to be compared is measured
in turns (A B C, A B C, ...), so that a noisy minute hits all alike, and a ratio is taken within each turn.
"""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.cluster import Cluster, rows

FIRST = -20
"""The nice value of what is measured."""

BATCH_US = 2000.0
"""A batch of executions lasts about so long: far above the clock's microsecond, far below a scheduler's tick."""

Turns = dict[str, list[float]]
"""By name, the microseconds of each turn."""


@contextmanager
def one_cpu() -> Iterator[int]:
    """Keep this process, and all it starts, on one CPU (the last one it may use), ahead of others if we are root."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    before = autogroup(os.getpid(), FIRST)
    try:
        yield max(allowed)
    finally:
        os.sched_setaffinity(0, allowed)
        autogroup(os.getpid(), before)


def autogroup(pid: int, nice: int) -> int:
    """Give the nice value to a process's whole session (sched(7)) and return what it had.

    The kernel shares the CPU between sessions first, and by a process's own nice value only within its session. Does
    nothing without root or on a kernel that has no such groups.
    """
    file = Path(f"/proc/{pid}/autogroup")
    try:
        had = int(file.read_text().split()[-1])
        file.write_text(str(nice))
        return had
    except (OSError, IndexError):
        return 0


def in_turns(measurements: dict[str, Callable[[], float]], turns: int) -> Turns:
    """Measure each in turn, after one turn that does not count."""
    for measure in measurements.values():
        measure()
    results: Turns = {name: [] for name in measurements}
    for _ in range(turns):
        for name, measure in measurements.items():
            results[name].append(measure())
    return results


def ratio(turns: Turns, one: str, other: str) -> float:
    """The median of one / other, each turn's own."""
    return statistics.median(a / b for a, b in zip(turns[one], turns[other]))


class Session:
    """A backend that times statements by its own clock, so that neither client nor protocol count."""

    def __init__(self, cluster: Cluster, milliseconds: float) -> None:
        self.connection = cluster.connect()
        self.budget = milliseconds * 1000
        autogroup(self.pid, FIRST)    # every backend is a session of its own to the kernel
        self._loop = self._timer("nothing", "NULL", 10, 1000)

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    def query(self, sql: str) -> dict[str, Any]:
        """The first row of a query."""
        return rows(self.connection, sql)[0]

    def timer(self, name: str, query: str) -> Callable[[], float]:
        """What measures a query that begins with SELECT: one call gives the median of its microseconds."""
        statement = "PERFORM" + query.removeprefix("SELECT")
        once = max(self._timer(name, statement, 3, 1), 1.0)
        batch = max(1, round(BATCH_US / once))
        batches = max(3, round(self.budget / (once * batch)))
        return lambda: max(self._run(name, batches, batch) - self._loop, 0.0)

    def once(self, name: str, query: str) -> float:
        """The microseconds of a single execution, for what takes seconds."""
        return self._timer(name, "PERFORM" + query.removeprefix("SELECT"), 1, 1)

    def _timer(self, name: str, statement: str, batches: int, batch: int) -> float:
        rows(self.connection, "SELECT make_timer(%s, %s)", name, statement)
        return self._run(name, batches, batch)

    def _run(self, name: str, batches: int, batch: int) -> float:
        took = rows(self.connection, f'SELECT pg_temp."{name}"(%s, %s) AS took', batches, batch)[0]["took"]
        return statistics.median(took)


def program(times: int, *command: object) -> float:
    """The median microseconds of a program from its start to its end, whatever its exit status."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        took.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(took)
