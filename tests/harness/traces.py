"""What tests could leave on the host: files where programs look for them, mounts, and settings of the kernel."""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STATE = Path("/var/lib/hugepage-sidecar")
"""What the sidecar remembers of this host."""

LOCK_OF_APPLY = Path("/run/hugepage-sidecar")

TREES = (STATE, *map(Path, (
    "/etc/oratab", "/etc/postgresql", "/etc/sysctl.conf", "/etc/sysctl.d", "/etc/tmpfiles.d", "/etc/modprobe.d", "/etc/default",
    "/etc/security", "/etc/systemd/system", "/etc/tuned", "/etc/cron.d", "/etc/prometheus", "/run/sysctl.d", "/run/tmpfiles.d",
    "/run/systemd/system", "/usr/local/lib/sysctl.d", "/usr/local/lib/hugepage-sidecar", "/var/opt/oracle")))
"""Where the sidecar, a boot or a server finds files, whole."""

OF_TESTS = f"{tempfile.gettempdir()}/pg_hugepages-"
"""What tests make for a while begins with this."""

NAMES = (str(LOCK_OF_APPLY), "/etc/*", "/usr/local/*/*", "/var/lib/*", "/dev/shm/ora_*", f"{OF_TESTS}*")
"""Places of many others: what is there counts, and not what is in it."""

OF_OTHERS = f"{OF_TESTS}against-"
"""What ./dev bench keeps beside the run of its tests."""

SETTINGS = (
    "/proc/sys/vm/*huge*", "/proc/sys/vm/overcommit_*", "/proc/sys/kernel/shm*", "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/io_uring_*", "/sys/kernel/mm/transparent_hugepage/*")

MOUNTS = (tempfile.gettempdir(), str(STATE), "/etc/", "/proc/", "/sys/", "/run/", "/usr/local/")

CGROUPS = [f"/sys/fs/cgroup/{hierarchy}{name}" for hierarchy in ("", "*/") for name in ("pg_hugepages*", "*attack*")]

_until_exit: set[Path] = set()


def remove_at_exit(directory: Path) -> None:
    """Remove the directory when this process ends, which is after the last look at the host."""
    _until_exit.add(directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)


def traces(settings: bool) -> dict[str, Any]:
    """All of that by its path. `settings`: those of the kernel, too."""
    found: dict[str, Any] = {}
    for path in (path for tree in TREES for path in (tree, *tree.rglob("*"))):
        with suppress(FileNotFoundError):
            status = path.lstat()
            found[str(path)] = (status.st_mode, status.st_uid, None if path.is_dir() else (status.st_size, status.st_mtime_ns))
    for pattern in (*NAMES, *CGROUPS):
        found |= {str(path): found.get(str(path), "is there") for path in _glob(pattern)}
    if settings:
        found |= {str(path): _text(path) for pattern in SETTINGS for path in _glob(pattern) if path.is_file()}
        points = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
        found |= {f"a mount at {point}": "is there" for point in points if point.startswith(MOUNTS)}
    return found


def _glob(pattern: str) -> Iterator[Path]:
    for path in Path("/").glob(pattern.lstrip("/")):
        if path not in _until_exit and not str(path).startswith(OF_OTHERS):
            yield path


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None    # for writing alone


def of_packages(paths: Collection[str]) -> set[str]:
    """Those that belong to a package of Debian, which somebody has installed meanwhile."""
    if not paths or not shutil.which("dpkg"):
        return set()
    told = subprocess.run(["dpkg", "--search", *paths], capture_output=True, text=True).stdout
    return {path for line in told.splitlines() for path in [line.partition(": ")[2]] if path in paths}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What was left, has gone or is another, in words."""
    new = after.keys() - before.keys()
    left = [f"left: {path}" for path in sorted(new - of_packages(new))]
    # The run before this one removes its last files when it no longer holds the lock.
    gone = [f"gone: {path}" for path in sorted(before.keys() - after.keys()) if not path.startswith(OF_TESTS)]
    both = sorted(before.keys() & after.keys())
    return left + gone + [f"changed: {path}: {before[path]} -> {after[path]}" for path in both if before[path] != after[path]]


@contextmanager
def made_directory(directory: Path) -> Iterator[Path]:
    """A directory of the host, which is gone at the end if it was not there."""
    was_there = directory.exists()
    directory.mkdir(exist_ok=True)
    try:
        yield directory
    finally:
        if not was_there:
            directory.rmdir()


@contextmanager
def removed_if_new(directory: Path) -> Iterator[None]:
    """The directory is gone at the end if it was not there."""
    was_there = directory.exists()
    try:
        yield
    finally:
        if not was_there:
            shutil.rmtree(directory, ignore_errors=True)
