"""What `hugepage-sidecar status` costs on a host with 2,000 processes of 50 instances, beside pmap.

The instances are stand-ins with small segments: what counts is how many files are read, for nothing of a process is
walked. The sidecar is the one that `make install` has installed.
"""

import statistics
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
from report import Results, Target

INSTANCES, PROCESSES = 50, 2000
LEAST_FASTER = 20.0


def rows_of(_directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """The one result."""
    with host_lock(), Oracle() as oracle, tempfile.NamedTemporaryFile("w") as pids:
        print(f"hugepage-sidecar status: {PROCESSES} processes of {INSTANCES} instances", file=sys.stderr)
        for number in range(INSTANCES):
            oracle.instance(f"farm{number}", SysV(64 * KB), SysV(4 * KB), servers=PROCESSES // INSTANCES - 1)
        members = [pid for instance in oracle.instances for pid in (instance.pmon, *instance.servers)]
        pids.write("\n".join(map(str, members)))
        pids.flush()
        turns = measure.in_turns({
            "ours": lambda: measure.program(5, Install.find().bindir / PROGRAM, "status", "--format", "json"),
            "pmap": lambda: measure.program(1, "/usr/bin/xargs", "-a", pids.name, "-n", 1, "/usr/bin/pmap"),
        }, turns=1 if quick else 3)
        yield {"microseconds": statistics.median(turns["ours"]), "faster": measure.ratio(turns, "pmap", "ours")}


def targets(results: Results) -> list[Target]:
    """Of the usual way."""
    return [Target(f"pmap PID for each of {PROCESSES} processes / hugepage-sidecar status ({result['microseconds'] / 1000:.0f} ms)",
                   result["faster"], LEAST_FASTER, is_least=True) for result in results]
