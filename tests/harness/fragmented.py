"""Memory in which the kernel finds hardly any piece as large as a huge page."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from harness.kernel import meminfo
from harness.smaps import BASE_PAGE
from harness.units import KB, MB

F_SETPIPE_SZ = 1031
PIPE = 16 * MB
KEPT = 512 * KB
"""One page of so many bytes is kept."""


@contextmanager
def fragmented(left: int) -> Iterator[None]:
    """Fills memory but for `left` bytes with the pages of pipes, which compaction can't move, and frees all but a few of each
    2 MB. Only for a guest: the whole host would notice."""
    kept, freed = _Pipes(), _Pipes()
    try:
        while meminfo()["MemAvailable"] > left:
            for _ in range(4):
                kept.write(BASE_PAGE)
                freed.write(KEPT - BASE_PAGE)
        freed.close()
        yield
    finally:
        freed.close()
        kept.close()


class _Pipes:
    """Pipes that take whatever is written."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.room = 0

    def write(self, size: int) -> None:
        if self.room < size:
            self.ends += os.pipe()
            self.room = fcntl.fcntl(self.ends[-1], F_SETPIPE_SZ, PIPE)
        os.write(self.ends[-1], bytes(size))
        self.room -= size

    def close(self) -> None:
        while self.ends:
            os.close(self.ends.pop())
