"""A small file system for a cluster's data directory, to be filled by tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.cluster import Cluster
from harness.poll import until
from harness.processes import CommandFailed, run
from harness.units import MB


class SmallDisk:
    """A mounted file system and a file that fills it."""

    def __init__(self, point: Path) -> None:
        self._point = point
        self._ballast = point / "ballast"

    def free(self) -> int:
        """Free space, in bytes."""
        numbers = os.statvfs(self._point)
        return numbers.f_bavail * numbers.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Fill the disk, except for `leave` bytes."""
        with open(self._ballast, "wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, self.free() - leave)

    def empty(self) -> None:
        """Remove the file that fills it."""
        self._ballast.unlink()


@contextmanager
def small_disk(cluster: Cluster) -> Iterator[SmallDisk]:
    """Move a stopped cluster's data directory to a new tmpfs; the cluster is stopped when the block ends."""
    point = Path(tempfile.mkdtemp(prefix="pg_hugepages-disk-", dir=cluster.root))
    point.chmod(0o755)
    run("mount", "-t", "tmpfs", "-o", f"size={256 * MB},mode=755", "none", str(point))
    try:
        elsewhere = point / "data"
        run("cp", "-a", str(cluster.data), str(elsewhere))
        shutil.rmtree(cluster.data)
        cluster.data = elsewhere
        yield SmallDisk(point)
    finally:
        cluster.stop("immediate")
        until("the last process of the server to leave the disk", lambda: _unmounted(point))


def _unmounted(point: Path) -> bool:
    try:
        run("umount", str(point))
    except CommandFailed as error:
        # The postmaster has ended, but its processes may still be ending.
        if "busy" not in str(error):
            raise
        return False
    return True
