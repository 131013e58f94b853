"""Hugetlb limits of a control group (version 2) for a throwaway server.

The kernel checks `rsvd.max` at mmap(2), and `max` at the first access to a page.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.lock import pool_lock
from harness.poll import until
from harness.processes import mounts, run
from harness.units import GB, MB

HOST_NAMESPACE = "cgroup:[4026531835]"
"""The namespace of the host itself, a constant of the kernel (include/linux/proc_ns.h)."""


class Cgroup:
    """A control group below the root of the version 2 hierarchy."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def limit(self, page_size: int, *, max: int | None = None, rsvd_max: int | None = None) -> None:
        """Set limits for huge pages of one size, in bytes; None leaves a limit unchanged."""
        if max is not None:
            self._file(page_size, "max").write_text(str(max))
        if rsvd_max is not None:
            self._file(page_size, "rsvd.max").write_text(str(rsvd_max))

    def show(self, visible: bool) -> None:
        """Make the directory of the group readable to all users (the default), or to root only."""
        self.directory.chmod(0o755 if visible else 0o700)

    def usage(self, page_size: int) -> int:
        """Bytes of huge pages charged to the group."""
        return int(self._file(page_size, "current").read_text())

    def refusals(self, page_size: int) -> int:
        """How often a limit refused huge pages to processes of the group."""
        return int(self._file(page_size, "events").read_text().removeprefix("max "))

    def join(self, pid: int | None = None) -> None:
        """Move a process, the calling one by default, and its future children into the group."""
        (self.directory / "cgroup.procs").write_text(str(pid or os.getpid()))

    def members(self) -> list[int]:
        """Pids of the processes in the group."""
        return [int(pid) for pid in (self.directory / "cgroup.procs").read_text().split()]

    def is_removed(self) -> bool:
        """Remove the directory; False while a process that was killed still ends."""
        with suppress(OSError):
            self.directory.rmdir()
        return not self.directory.exists()

    def _file(self, page_size: int, name: str) -> Path:
        size = f"{page_size // GB}GB" if page_size >= GB else f"{page_size // MB}MB"
        return self.directory / f"hugetlb.{size}.{name}"


@contextmanager
def hugetlb_cgroup(outer: Cgroup | None = None, name: str = "") -> Iterator[Cgroup]:
    """A new group with the hugetlb controller and `name` in its name, below `outer` if given; removed at the end of the block.

    Its processes must have ended by then.
    """
    with controller_enabled(outer) as root:
        group = Cgroup(Path(tempfile.mkdtemp(prefix=f"pg_hugepages-test-{name}", dir=root)))
        try:
            group.show(True)
            yield group
        finally:
            until("the processes of the control group to end", lambda: not group.members())
            until("the end of the control group", group.is_removed)


@contextmanager
def controller_enabled(outer: Cgroup | None = None) -> Iterator[Path]:
    """The directory of `outer`, or the root of the version 2 hierarchy, whose groups have the hugetlb controller in the block."""
    with pool_lock(), _parent(outer) as root, _controller_enabled(root):
        yield root


def cgroup2_mount() -> Path | None:
    """The mount point of the version 2 hierarchy; None if it is not mounted."""
    return next((mount.point for mount in mounts() if mount.fstype == "cgroup2"), None)


def limits_are_hidden() -> bool:
    """Whether groups above the topmost one that is visible may have limits: in a cgroup namespace, or where a part of the
    hierarchy is mounted, as in a container."""
    in_namespace = os.readlink("/proc/self/ns/cgroup") != HOST_NAMESPACE
    return in_namespace or any(mount.fstype in ("cgroup", "cgroup2") and mount.root != "/" for mount in mounts())


@contextmanager
def _parent(outer: Cgroup | None) -> Iterator[Path]:
    """The directory of `outer`, or the root of the hierarchy, mounted for the length of the block if necessary."""
    existing = outer.directory if outer else cgroup2_mount()
    if existing:
        yield existing
        return
    point = Path(tempfile.mkdtemp(prefix="pg_hugepages-cgroup2-"))
    try:
        run("mount", "-t", "cgroup2", "none", str(point))
        try:
            yield point
        finally:
            run("umount", str(point))
    finally:
        point.rmdir()


@contextmanager
def _controller_enabled(root: Path) -> Iterator[None]:
    control = root / "cgroup.subtree_control"
    if "hugetlb" in control.read_text().split():
        yield
        return
    control.write_text("+hugetlb")
    try:
        yield
    finally:
        control.write_text("-hugetlb")
