"""The locks of this host: of the host itself, of its huge pages, and of a whole run of tests.

Who holds the host alone may look at every process of it and change any setting. Who shares it looks at its own servers alone, which
take no huge pages unless it holds the pools, too. The first two locks are reentrant within a process: a pool within a cgroup within
a test takes each once. The third lock keeps files that do not answer away from those who have the sidecar look at a server beside them.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

LOCK_FILE = "/run/lock/pg_hugepages.lock"
POOL_LOCK_FILE = "/run/lock/pg_hugepages.pool.lock"
FILES_LOCK_FILE = "/run/lock/pg_hugepages.files.lock"
RUN_LOCK_FILE = "/run/lock/pg_hugepages.run.lock"


@dataclass
class _Held:
    depth: int
    fd: int
    shared: bool


_held: dict[str, _Held] = {}


@contextmanager
def host_lock(shared: bool = False) -> Iterator[None]:
    """Hold the host, alone or beside others that share it; waits without a deadline while another process holds it otherwise."""
    with _lock(LOCK_FILE, shared):
        yield


@contextmanager
def pool_lock() -> Iterator[None]:
    """Hold the pools of huge pages and the hugetlb controller, and the host: alone, if this process does not share it already."""
    with ExitStack() as locks:
        if LOCK_FILE not in _held:
            locks.enter_context(host_lock())
        locks.enter_context(_lock(POOL_LOCK_FILE, shared=False))
        yield


@contextmanager
def files_lock(answer: bool) -> Iterator[None]:
    """Hold the files of the servers' user beside others that need them to answer, or alone, as some do not: of that user the sidecar then
    tells nothing."""
    with _lock(FILES_LOCK_FILE, shared=answer):
        yield


@contextmanager
def _lock(path: str, shared: bool) -> Iterator[None]:
    held = _held.get(path)
    if held is None:
        held = _held[path] = _Held(0, _open(path), shared)
        try:
            fcntl.flock(held.fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            os.close(_held.pop(path).fd)
            raise
    elif held.shared and not shared:
        raise RuntimeError("this test changes the host, or looks at all of it, beside others: it may not be marked as sharing it")
    held.depth += 1
    try:
        yield
    finally:
        held.depth -= 1
        if held.depth == 0:
            os.close(_held.pop(path).fd)


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
