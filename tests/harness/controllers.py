"""A control group with files of any controllers, in the hierarchies (v1 or v2) that have them, and who counts huge pages.

cgroup.py is the same for the limits of the hugetlb controller v2 alone.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from harness.cgroup import cgroup2_mount
from harness.cluster import Unsupported
from harness.poll import until
from harness.processes import CommandFailed, mounts, run


class ControlGroup:
    """One group, which is a directory in each hierarchy."""

    def __init__(self, directories: dict[str, Path]) -> None:
        self._directories = directories

    def file(self, name: str) -> Path:
        """The group's file `memory.max` or the like."""
        return self._directories[name.partition(".")[0]] / name

    def join(self, pid: int | None = None) -> None:
        """Move a process, the calling one by default, and its future children into the group."""
        for directory in set(self._directories.values()):
            (directory / "cgroup.procs").write_text(str(pid or os.getpid()))

    def events(self, event: str) -> int:
        """A count of `memory.events`."""
        counts = dict(line.split() for line in self.file("memory.events").read_text().splitlines())
        return int(counts[event])


@contextmanager
def control_group(**files: str | int) -> Iterator[ControlGroup]:
    """A new group with these files' values, `**{"cpuset.mems": 0}`; removed at the end, when its processes have ended."""
    with ExitStack() as stack:
        controllers = dict.fromkeys(name.partition(".")[0] for name in files)
        roots = {controller: stack.enter_context(_hierarchy(controller)) for controller in controllers}
        made = {root: stack.enter_context(_directory(root)) for root in dict.fromkeys(roots.values())}
        group = ControlGroup({controller: made[root] for controller, root in roots.items()})
        for name, value in files.items():
            if not group.file(name).exists():
                raise Unsupported(f"this kernel has no {name}")
            group.file(name).write_text(str(value))
        yield group


@contextmanager
def _directory(root: Path) -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-test-", dir=root))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        until("the processes of the control group to end", lambda: not (directory / "cgroup.procs").read_text())
        directory.rmdir()


@contextmanager
def _hierarchy(controller: str) -> Iterator[Path]:
    """The root of the hierarchy that has the controller; in v2 the controller is on for its groups until the end."""
    for mount in mounts():
        if mount.fstype == "cgroup" and mount.point.name == controller:
            yield mount.point
            return
    root = cgroup2_mount()
    if not root or controller not in (root / "cgroup.controllers").read_text().split():
        raise Unsupported(f"no hierarchy has the controller {controller}")
    control = root / "cgroup.subtree_control"
    if controller in control.read_text().split():
        yield root
        return
    control.write_text(f"+{controller}")
    try:
        yield root
    finally:
        control.write_text(f"-{controller}")


OPTION = "memory_hugetlb_accounting"


@contextmanager
def hugetlb_accounting(on: bool) -> Iterator[None]:
    """Whether memory cgroups count huge pages (Linux 6.6 and later); as before at the end of the block."""
    root = cgroup2_mount()
    before = _accounting(root)
    if before != on:
        _remount(root, on)
    try:
        yield
    finally:
        if before != on:
            _remount(root, before)


def _remount(root: Path, on: bool) -> None:
    try:
        # As mount(8) would, without the options that are in force.
        run("mount", "-i", "-o", f"remount,{OPTION}" if on else "remount", "--options-mode", "ignore", "-t", "cgroup2", "none", str(root))
    except CommandFailed:
        pass
    if _accounting(root) != on:
        raise Unsupported("memory cgroups count huge pages since Linux 6.6")


def _accounting(root: Path) -> bool:
    return any(line.split()[1] == str(root) and OPTION in line.split()[3].split(",")
               for line in Path("/proc/self/mounts").read_text().splitlines())
