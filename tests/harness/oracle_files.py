"""The sidecar's scripts for Oracle, and its writer with records from a test instead of a survey."""

import json
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from harness.processes import run
from harness.sidecar import binary

REPOSITORY = Path(__file__).parents[2]


@cache
def script(name: str, *options: str) -> str:
    """The output of `hugepage-sidecar oracle NAME`."""
    return run(binary(), "oracle", name, *options)


def public_directory(parent: str | None = None) -> Path:
    """A directory that all users may read, as a DBA creates it; the caller removes it."""
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-oracle-", dir=parent)).resolve()
    directory.chmod(0o755)
    return directory


class Writer:
    """`oracle write DIRECTORY` with records from a test, any number of snapshots. A context manager."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [binary(), "oracle", "write", directory, "--records", *(options or ("--mode", "644"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_exception: object) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def write(self, snapshot: dict[str, Any]) -> str:
        """Write one snapshot and return its snapshot_id; AssertionError with the sidecar's message if it failed."""
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(snapshot) + "\n")
            self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer, self.process.stderr.read()
        return answer


def write(directory: Path, snapshot: dict[str, Any], *options: str) -> str:
    """Write one snapshot; see Writer.write."""
    with Writer(directory, *options) as writer:
        return writer.write(snapshot)
