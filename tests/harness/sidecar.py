"""The sidecar program, as it was built, and what it answers."""

import atexit
import csv
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PROGRAM = "hugepage-sidecar"
OK, WARNING, CRITICAL, UNKNOWN, USAGE = 0, 1, 2, 3, 64


@cache
def binary() -> Path:
    """The one HUGEPAGE_SIDECAR names; without it the one that was built last where cargo compiles."""
    return _built("*/", "*/*/")


@cache
def static_binary() -> Path:
    """The same, but the one that the Makefile builds, below the directory of a target."""
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
    """What one call printed, and how it ended."""

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
    """A copy where every user may run it; where cargo compiles may be root's own."""
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-sidecar-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    copy = Path(shutil.copy(binary(), directory))
    copy.chmod(0o755)
    return copy


def command(*arguments: str | Path, user: str | None = None, through: Sequence[str | Path] = ()) -> list[str]:
    """The command line of a call, as another user if one is named.

    `through`: the command of root that it is run by, as unshare(1).
    """
    called = ["runuser", "-u", user, "--", str(binary_for_everybody())] if user else [str(binary())]
    return [*map(str, through), *called, *map(str, arguments)]


def run(*arguments: str | Path, user: str | None = None, through: Sequence[str | Path] = (), seconds: float = 60,
        **options: Any) -> Answer:
    """Run it to its end; the options are subprocess.run's."""
    done = subprocess.run(command(*arguments, user=user, through=through), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=seconds, **options)
    return Answer(done.returncode, done.stdout, done.stderr)


def start(*arguments: str | Path, **options: Any) -> "subprocess.Popen[str]":
    """Start it and go on; the caller waits for it. The options are Popen's."""
    return subprocess.Popen(command(*arguments), **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                                    "stderr": subprocess.PIPE, "text": True, **options})
