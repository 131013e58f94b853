"""Transparent huge pages for shared memory: a switch of the whole host, set for the length of a block.

`enabled` does not govern shared memory; `shmem_enabled` does.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.lock import host_lock


class ShmemThp:
    """The kernel's switch; it counts for pages touched from then on."""

    FILE = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")

    def mode(self) -> str:
        """The selected mode: `always`, `within_size`, `advise`, `never`, `deny` or `force`."""
        return self.FILE.read_text().split("[")[1].split("]")[0]

    def select(self, mode: str) -> None:
        """Select a mode."""
        self.FILE.write_text(mode)


@contextmanager
def borrowed_shmem_thp(mode: str) -> Iterator[ShmemThp]:
    """Select a mode and, when the block ends, the one found."""
    with host_lock():
        switch = ShmemThp()
        found = switch.mode()
        try:
            switch.select(mode)
            yield switch
        finally:
            switch.select(found)
