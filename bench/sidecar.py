"""What `hugepage-sidecar status` costs on a host with 2,000 processes of 50 instances, beside the reads it can't do without.

The instances are stand-ins with small segments: what counts is how many files are read, for nothing of a process is
walked. The sidecar is the one that `make install` has installed.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
from harness.cluster import Install
from harness.lock import host_lock
from harness.oracle import Oracle, SysV
from harness.sidecar import PROGRAM
from harness.units import KB

INSTANCES, PROCESSES = 50, 2000
AT_ONCE = 200
"""pmap refuses a thousand."""

MOST_RATIO, LEAST_FASTER, MOST_MEMORY = 1.15, 20.0, 20_000 * KB


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """The one result; times in microseconds, memory in bytes."""
    with host_lock(), Oracle() as oracle, tempfile.NamedTemporaryFile("w") as pids:
        print(f"hugepage-sidecar status: {PROCESSES} processes of {INSTANCES} instances", file=sys.stderr)
        for number in range(INSTANCES):
            oracle.instance(f"farm{number}", SysV(64 * KB), SysV(4 * KB), servers=PROCESSES // INSTANCES - 1)
        pmons = [instance.pmon for instance in oracle.instances]
        members = [pid for instance in oracle.instances for pid in (instance.pmon, *instance.servers)]
        pids.write("\n".join(map(str, members)))
        pids.flush()
        program = Bare(directory / "host")
        times = 3 if quick else 10
        status = [Install.find().bindir / PROGRAM, "status", "--format", "json"]
        turns = measure.in_turns({
            "ours": lambda: program.run(times, *status),
            "floor": lambda: program.reads(times, files(members, pmons)),
        }, turns=3 if quick else 11)
        memory = program.proof * KB
        pmap = {
            "pmap PID, each": program.run(1, "/usr/bin/xargs", "-a", pids.name, "-n", 1, "/usr/bin/pmap"),
            "pmap -X, 200 at once": program.run(1, "/usr/bin/xargs", "-a", pids.name, "-n", AT_ONCE, "/usr/bin/pmap", "-X"),
        }
        yield {"instances": INSTANCES, "processes": len(members), "memory": memory,
               "microseconds": {**{name: statistics.median(took) for name, took in turns.items()}, **pmap},
               "ratio": measure.ratio(turns, "ours", "floor")}


def files(members: list[int], pmons: list[int]) -> list[str]:
    """What no answer can do without: whose each process is, the page tables of those that count, and of each instance
    the mappings, when it started, what it may lock and what limits it.
    """
    everyone = [f"/proc/{name}/cmdline" for name in os.listdir("/proc") if name.isdigit()]
    page_tables = [f"/proc/{pid}/status" for pid in members]
    each = [f"/proc/{pid}/{name}" for pid in pmons for name in ("maps", "stat", "limits", "cgroup")]
    return [*everyone, *page_tables, *each, "/proc/meminfo", "/proc/self/mountinfo"]


class Bare:
    """The small program (host.c) that measures reads, and other programs."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self.proof = 0

    def reads(self, times: int, paths: list[str]) -> float:
        """The median microseconds of reading these."""
        return self._call("reads", times, text="\n".join(paths) + "\n")[0]

    def run(self, times: int, *command: object) -> float:
        """The median microseconds of a program; proof is the most memory that it had since, in kilobytes."""
        took, self.proof = self._call("run", times, *command)
        return took

    def _call(self, *arguments: object, text: str = "") -> tuple[float, int]:
        done = subprocess.run([str(self._program), *map(str, arguments)], check=True, input=text, text=True,
                              stdout=subprocess.PIPE)
        took, proof = done.stdout.split()
        return int(took) / 1000, int(proof)


def exceeds(results: list[dict[str, Any]]) -> bool:
    """Whether it is slower, or larger, than it may be."""
    return any(result["ratio"] > MOST_RATIO or faster(result) < LEAST_FASTER or result["memory"] > MOST_MEMORY
               for result in results)


def faster(result: dict[str, Any]) -> float:
    """How many times the status of all is faster than asking pmap for each process."""
    return result["microseconds"]["pmap PID, each"] / result["microseconds"]["ours"]


def table(results: list[dict[str, Any]]) -> str:
    """What each way takes."""
    lines = []
    for result in results:
        lines.append(f"hugepage-sidecar status, {result['processes']} processes of {result['instances']} instances: "
                     "milliseconds, medians")
        names = {"ours": "hugepage-sidecar status", "floor": "floor: the bare reads"}
        for name, took in result["microseconds"].items():
            times = took / result["microseconds"]["ours"]
            lines.append(f"{names.get(name, name):<30}{took / 1000:>10.1f}  {times:>7.2f} times ours")
        lines.append(f"ratio, ours / floor: {result['ratio']:.2f}; most memory: {result['memory'] / 1e6:.1f} MB")
    return "\n".join(lines)
