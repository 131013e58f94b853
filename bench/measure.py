"""How anything here is timed: on one CPU, in turns, medians of medians.

Everything runs on the same CPU, so that no time goes into waking up another one. What is to be compared is measured
in turns (A B C, A B C, ...), so that a noisy minute hits all alike, and a ratio is taken within each turn.
"""

import os
import pwd
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.cluster import SUPERUSER, Cluster, rows

BATCH_US = 2000.0
"""A batch of executions lasts about so long: far above the clock's microsecond, far below a scheduler's tick."""

Turns = dict[str, list[float]]
"""By name, the microseconds of each turn."""


def pin() -> int:
    """Keep this process, and all it starts from now on, on one CPU: the last one it may use."""
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    return cpu


def in_turns(measurements: dict[str, Callable[[], float]], turns: int) -> Turns:
    """Measure each in turn, after one turn that does not count."""
    for measure in measurements.values():
        measure()
    results: Turns = {name: [] for name in measurements}
    for _ in range(turns):
        for name, measure in measurements.items():
            results[name].append(measure())
    return results


def ratio(turns: Turns, ours: str, *floor: str) -> float:
    """The median of ours / (sum of the floor), each turn's own."""
    return statistics.median(turn[0] / sum(turn[1:]) for turn in zip(*(turns[name] for name in (ours, *floor))))


class Session:
    """A backend that times statements by its own clock, so that neither client nor protocol count."""

    def __init__(self, cluster: Cluster, milliseconds: float) -> None:
        self.connection = cluster.connect()
        self.budget = milliseconds * 1000
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

    def _timer(self, name: str, statement: str, batches: int, batch: int) -> float:
        rows(self.connection, "SELECT make_timer(%s, %s)", name, statement)
        return self._run(name, batches, batch)

    def _run(self, name: str, batches: int, batch: int) -> float:
        took = rows(self.connection, f'SELECT pg_temp."{name}"(%s, %s) AS took', batches, batch)[0]["took"]
        return statistics.median(took)


def floor(program: Path, what: str, times: int, *arguments: object) -> float:
    """The median microseconds of the bare program (floor.c), run as the server's user."""
    become = {}
    if os.geteuid() == 0:
        owner = pwd.getpwnam(SUPERUSER)
        become = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    command = [str(program), what, str(times), *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd="/", **become)
    return int(done.stdout.split()[0]) / 1000


def pgbench(cluster: Cluster, query: str, protocol: str, transactions: int) -> float:
    """The median microseconds that one client waits for a query: `protocol` is pgbench's -M, simple or prepared."""
    with tempfile.TemporaryDirectory(dir=cluster.root) as directory:
        if os.geteuid() == 0:
            os.chown(directory, pwd.getpwnam(SUPERUSER).pw_uid, -1)
        script = Path(directory, "query.sql")
        script.write_text(query + ";\n")
        cluster.command("pgbench", "-n", "-M", protocol, "-t", str(transactions), "-l",
                        f"--log-prefix={directory}/log", "-f", script, "-h", cluster.root, "-U", SUPERUSER, "postgres")
        log = next(Path(directory).glob("log.*")).read_text()
    return statistics.median(int(took) for took in re.findall(r"(?m)^\d+ \d+ (\d+) ", log))
