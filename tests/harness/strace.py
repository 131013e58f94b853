"""strace on one process: trace its system calls, or make them fail or delay them."""

import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.poll import until
from harness.processes import status


COMMANDS_AT_A_TIME = 3
"""So many of these run at once on two CPUs: each mostly waits, the program for its readers, and strace for both."""


def failing(call: str, error: str, number: int) -> list[str]:
    """The start of a command line: of each process of the command that follows the n-th such call fails. A filter of the kernel stops
    the processes at these calls alone, which takes half of the time."""
    return ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"]


class Trace:
    """The output of strace so far."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def lines(self, pattern: str) -> list[str]:
        """The system calls that match a regular expression; a descriptor is shown as `3</proc/1/maps>`."""
        return [line for line in self._output.read_text().splitlines() if re.search(pattern, line)]


@contextmanager
def traced(pid: int, calls: str, inject: str | None = None, follow: bool = False, path: Path | None = None) -> Iterator[Trace]:
    """Trace these system calls of a process until the block ends; `inject` is an argument of strace -e inject=.

    `follow`: of the processes that it starts, too. `path`: only calls that access this file.
    """
    with tempfile.NamedTemporaryFile(prefix="pg_hugepages-strace-") as output:
        injection = [*(["-P", str(path)] if path else []), *(["-e", f"inject={inject}"] if inject else [])]
        strace = subprocess.Popen(["strace", "-q", "-y", *(["-f"] if follow else []), "-p", str(pid), "-o", output.name, "-e", f"trace={calls}", *injection],
                                  stderr=subprocess.DEVNULL)
        try:
            until("strace to attach", lambda: status(pid)["TracerPid"] == str(strace.pid) or strace.poll() is not None)
            assert strace.poll() is None, "strace could not attach"
            yield Trace(Path(output.name))
        finally:
            strace.send_signal(signal.SIGINT)
            strace.wait()
