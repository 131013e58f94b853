"""One at a time: the huge page pool belongs to the host, so whoever changes or measures it holds this lock.

Reentrant within a process: a pool within a cgroup within a test counts as one holder.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

LOCK_FILE = "/run/lock/pg_hugepages.lock"

_depth = 0


@contextmanager
def host_lock() -> Iterator[None]:
    """Hold the exclusive lock of this host's huge pages; waits as long as another process holds it."""
    global _depth
    if _depth == 0:
        fd = _open()
        fcntl.flock(fd, fcntl.LOCK_EX)
    else:
        fd = -1
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if fd >= 0:
            os.close(fd)


def _open() -> int:
    try:
        # Without O_CREAT: in a sticky directory the kernel refuses it on a file of another user (fs.protected_regular).
        return os.open(LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(LOCK_FILE, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
