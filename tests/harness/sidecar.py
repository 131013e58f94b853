"""Run the sidecar program that was built, and read its output."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.cluster import Cluster
from harness.poll import SLOWER
from harness.processes import plain_proc
from harness.refusal import need_the_host
from harness.traces import remove_at_exit

PROGRAM = "hugepage-sidecar"
OK, WARNING, CRITICAL, UNKNOWN, USAGE = 0, 1, 2, 3, 64


@cache
def binary() -> Path:
    """The program that HUGEPAGE_SIDECAR names; without it, the one that cargo built last."""
    return _built("*/", "*/*/")


@cache
def static_binary() -> Path:
    """The same, but only the static program that the Makefile builds, below the directory of a target."""
    return _built("*/*/")


def _built(*places: str) -> Path:
    if "HUGEPAGE_SIDECAR" in os.environ:
        return Path(os.environ["HUGEPAGE_SIDECAR"])
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    built = [path for place in places for path in target.glob(place + PROGRAM)]
    if not built:
        raise LookupError(f"no {PROGRAM} below {target}: run `make sidecar` first")
    return max(built, key=lambda path: path.stat().st_mtime)


@dataclass(frozen=True)
class Answer:
    """The output and the exit status of one call."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The output of `--format json`."""
        return json.loads(self.stdout)

    def csv(self) -> list[dict[str, str]]:
        """The rows of `--format csv`."""
        return list(csv.DictReader(io.StringIO(self.stdout)))


@cache
def binary_for_everybody() -> Path:
    """A copy that all users may run, because cargo's target directory may be readable to root only."""
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-sidecar-"))
    remove_at_exit(directory)
    directory.chmod(0o755)
    copy = Path(shutil.copy(binary(), directory))
    copy.chmod(0o755)
    return copy


def command(*arguments: str | Path, user: str | None = None, through: Sequence[str | Path] = ()) -> list[str]:
    """The command line of a call, run as `user` if given.

    `through`: a command of root that runs it, such as unshare(1).
    """
    if not user and "--root" not in arguments and any(root.exists() for root in Cluster.roots):
        # It is to tell of these servers: root may read their maps, others may not, or are no account of a service.
        need_the_host()
    called = [*plain_proc(), "runuser", "-u", user, "--", str(binary_for_everybody())] if user else [str(binary())]
    return [*map(str, through), *called, *map(str, arguments)]


def run(*arguments: str | Path, user: str | None = None, through: Sequence[str | Path] = (), seconds: float = 60,
        **options: Any) -> Answer:
    """Run it and wait for its end; the options are those of subprocess.run."""
    done = subprocess.run(command(*arguments, user=user, through=through), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds * SLOWER, **options)
    return Answer(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Usage:
    """What one call took: seconds, and its peak memory in bytes."""

    seconds: float
    peak_memory: int


MEASURE = """import os, resource, subprocess, sys, time
begun = time.monotonic()
status = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(f"{time.monotonic() - begun} {used.ru_maxrss * 1024}")
sys.exit(status)
"""


def run_measured(*arguments: str | Path) -> tuple[Answer, Usage]:
    """The same, with what it took (getrusage(2)). A process of its own measures: the kernel counts the largest child ever."""
    with tempfile.NamedTemporaryFile("r") as result:
        answer = run(*arguments, through=[sys.executable, "-c", MEASURE, result.name])
        seconds, peak_memory = result.read().split()
        return answer, Usage(float(seconds), int(peak_memory))


def start(*arguments: str | Path, **options: Any) -> "subprocess.Popen[str]":
    """Start it; the caller waits for its end. The options are those of Popen."""
    return subprocess.Popen(command(*arguments), **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                                    "stderr": subprocess.PIPE, "text": True, **options})
