"""The exclusive locks of this host: of its huge pages, held by every test that changes or measures them, and of a whole run of
tests.

The lock of huge pages is reentrant within a process: a pool within a cgroup within a test takes it once.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOCK_FILE = "/run/lock/pg_hugepages.lock"
RUN_LOCK_FILE = "/run/lock/pg_hugepages.run.lock"

_depth = 0


@contextmanager
def host_lock() -> Iterator[None]:
    """Hold the lock; waits without a deadline while another process holds it."""
    global _depth
    if _depth == 0:
        fd = _open(LOCK_FILE)
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


@contextmanager
def run_lock(waits: Callable[[], object]) -> Iterator[None]:
    """Hold the lock of a run of tests; `waits` is called if another run holds it. Two runs that took turns test by test would
    both be slow, and see each other."""
    fd = _open(RUN_LOCK_FILE)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _open(path: str) -> int:
    try:
        # In a sticky directory the kernel refuses O_CREAT for a file of another user (fs.protected_regular).
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
