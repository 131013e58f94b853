"""The exclusive lock of this host's huge pages. Every test that changes or measures them holds it.

Reentrant within a process: a pool within a cgroup within a test takes the lock once.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

LOCK_FILE = "/run/lock/pg_hugepages.lock"

_depth = 0


@contextmanager
def host_lock() -> Iterator[None]:
    """Hold the lock; waits without a deadline while another process holds it."""
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
        # In a sticky directory the kernel refuses O_CREAT for a file of another user (fs.protected_regular).
        return os.open(LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(LOCK_FILE, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
