"""Commands and processes: running the one, reading /proc about the other."""

import ctypes
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


class CommandFailed(Exception):
    """A command ended with an error; the message holds what it printed."""


def run(*command: str | Path, prepare: Callable[[], None] | None = None, env: dict[str, str] | None = None,
        cwd: Path | None = None) -> str:
    """Run a command and return its stdout; CommandFailed with its output if it fails.

    prepare runs in the child just before the command, say to join a control group.
    An exception meanwhile waits for the command: half a server start could not be undone.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               text=True, preexec_fn=prepare, env=env, cwd=cwd)
    try:
        output, errors = process.communicate()
    except BaseException:
        process.communicate()
        raise
    if process.returncode != 0:
        raise CommandFailed(f"{' '.join(map(str, command))}: exit status {process.returncode}\n{output}{errors}")
    return output


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo: where, and which file system."""

    point: Path
    fstype: str


def mounts() -> list[Mount]:
    """The file systems mounted in this namespace."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        found.append(Mount(Path(before.split()[4]), after.split()[0]))
    return found


def status(pid: int) -> dict[str, str]:
    """Fields of /proc/PID/status as text, `VmRSS` being `1234 kB`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def status_bytes(pid: int, field: str) -> int:
    """A size of /proc/PID/status in bytes."""
    number, _unit = status(pid)[field].split()
    return int(number) * 1024


def alive(pid: int) -> bool:
    """Whether the process runs: a zombie does not."""
    try:
        return not status(pid)["State"].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False


_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_FILE = 0


def same_open_file(pid: int, fd: int, other_pid: int, other_fd: int) -> bool:
    """Whether two descriptors share an open file, as when one was inherited; kcmp(2), which libc does not wrap."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = (ctypes.c_long(number) for number in (_KCMP[platform.machine()], pid, other_pid, _KCMP_FILE, fd, other_fd))
    answer = libc.syscall(*numbers)
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"kcmp of descriptor {fd} of {pid} and {other_fd} of {other_pid}")
    return answer == 0


def working_below(directories: Sequence[Path]) -> Iterator[int]:
    """Pids of live processes whose working directory is one of these directories or below (servers work in theirs)."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if any(cwd.is_relative_to(directory) for directory in directories) and alive(int(entry.name)):
            yield int(entry.name)
