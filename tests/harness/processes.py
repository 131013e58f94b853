"""Run commands, and read /proc/PID of processes."""

import ctypes
import errno
import os
import platform
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.poll import until


class CommandFailed(Exception):
    """A command ended with an error; the message holds what it printed."""


def run(*command: str | Path, prepare: Callable[[], None] | None = None, env: dict[str, str] | None = None,
        cwd: Path | None = None) -> str:
    """Run a command and return its stdout; CommandFailed with its output if it fails.

    `prepare` runs in the child just before the command, for example to join a control group.
    An exception waits for the command to end, because half a server start could not be undone.
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
    """One line of /proc/self/mountinfo: what of the file system is mounted, where, and its type."""

    root: str
    point: Path
    fstype: str


def mounts() -> list[Mount]:
    """The file systems mounted in this namespace."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, after = line.split(" - ", 1)
        root, point = before.split()[3:5]
        found.append(Mount(root, Path(point), after.split()[0]))
    return found


@contextmanager
def as_its_user(pid: int) -> Iterator[None]:
    """Be the user of a process in the block, if root is less than that, as in a container: it lacks CAP_SYS_PTRACE."""
    owner, before = os.stat(f"/proc/{pid}"), (os.getegid(), os.geteuid())
    if before[1] == 0 and not os.access(f"/proc/{pid}/exe", os.R_OK):
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(before[1])
        os.setegid(before[0])


@cache
def plain_proc() -> list[str]:
    """How a command begins that sees all processes as any user: where /proc hides those of others (hidepid), by a /proc of its own."""
    hides = re.search(r"^\S+ \S+ \S+ \S+ /proc .*\bhidepid=(?!0|off)", Path("/proc/self/mountinfo").read_text(), re.MULTILINE)
    mount = 'mount -t proc proc /proc && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"] if hides else []


def status(pid: int) -> dict[str, str]:
    """Fields of /proc/PID/status as text; `VmRSS` reads `1234 kB`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def status_bytes(pid: int, field: str) -> int:
    """A size of /proc/PID/status in bytes."""
    number, _unit = status(pid)[field].split()
    return int(number) * 1024


def shared_memory_of(pid: int) -> tuple[str | None, str | None]:
    """What a process has touched of shared memory: in base pages, in huge pages."""
    found = status(pid)
    return found.get("RssShmem"), found.get("HugetlbPages")


def page_tables(pids: Iterable[int]) -> int:
    """The page tables of these processes together (VmPTE), in bytes."""
    return sum(status_bytes(pid, "VmPTE") for pid in pids)


def memlock(pid: int) -> int | None:
    """The soft limit on locked memory of a process, in bytes; None without a limit."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    soft = re.search(r"^Max locked memory +(\S+) ", limits, re.MULTILINE).group(1)
    return None if soft == "unlimited" else int(soft)


def children(pid: int) -> list[int]:
    """Pids of the running children of a process; none once it has ended."""
    try:
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def command_line(pid: int) -> str:
    """The arguments of a process, or the title that a server process gives itself; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> list[int]:
    """Pids of the running children of a process, of their children, and so on."""
    found = []
    for child in children(pid):
        found.append(child)
        with suppress(FileNotFoundError, ProcessLookupError):
            found += descendants(child)
    return found


def waits_in_the_kernel(pid: int) -> bool:
    """Whether no signal ends its wait (state D)."""
    try:
        return status(pid)["State"].startswith("D")
    except (FileNotFoundError, ProcessLookupError):
        return False


def waits_so_far(pid: int) -> int:
    """How often a process has gone to sleep by itself: a worker does after each of its rounds."""
    return int(status(pid)["voluntary_ctxt_switches"])


def limit_address_space(pid: int, size: int, owner: str) -> None:
    """Set the soft limit of a process (`ulimit -v`), as its owner, who needs no capability for it."""
    run("runuser", "-u", owner, "--", "prlimit", f"--pid={pid}", f"--as={size}:")


def cpu_seconds(pid: int) -> float:
    """Seconds on a CPU so far, in user and kernel mode, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def alive(pid: int) -> bool:
    """Whether the process runs: a zombie does not."""
    try:
        return not status(pid)["State"].startswith(("Z", "X"))
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_group(leader: subprocess.Popen) -> None:
    """Kill a process and its whole group, and wait until all of it is gone: a large one ends after its leader."""
    os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
    until("the end of the group", lambda: not _has_a_process(leader.pid))


def _has_a_process(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


_KCMP = {"x86_64": 312, "aarch64": 272}
_KCMP_FILE = 0


def same_open_file(pid: int, fd: int, other_pid: int, other_fd: int) -> bool:
    """Whether two descriptors share one open file, as after fork(2); by kcmp(2), which libc does not wrap."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = (ctypes.c_long(number) for number in (_KCMP[platform.machine()], pid, other_pid, _KCMP_FILE, fd, other_fd))
    answer = libc.syscall(*numbers)
    # It was closed meanwhile.
    if answer < 0 and ctypes.get_errno() == errno.EBADF:
        return False
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"kcmp of descriptor {fd} of {pid} and {other_fd} of {other_pid}")
    return answer == 0


def working_below(directories: Sequence[Path]) -> Iterator[int]:
    """Pids of running processes whose working directory is at or below one of these; a server's is its data directory."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            with as_its_user(int(entry.name)):
                cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if any(cwd.is_relative_to(directory) for directory in directories) and alive(int(entry.name)):
            yield int(entry.name)
