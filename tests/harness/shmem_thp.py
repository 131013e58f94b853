"""Transparent huge pages for shared memory: the host's `shmem_enabled`, changed for the length of a block.

`enabled` controls private memory only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.lock import host_lock


class ShmemThp:
    """The kernel's setting; it applies to pages first accessed after a change."""

    FILE = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")

    def mode(self) -> str:
        """The selected mode: `always`, `within_size`, `advise`, `never`, `deny` or `force`."""
        return self.FILE.read_text().split("[")[1].split("]")[0]

    def select(self, mode: str) -> None:
        """Select a mode."""
        self.FILE.write_text(mode)


@contextmanager
def borrowed_shmem_thp(mode: str) -> Iterator[ShmemThp]:
    """Select a mode; restore the earlier one when the block ends."""
    with host_lock():
        switch = ShmemThp()
        found = switch.mode()
        try:
            switch.select(mode)
            yield switch
        finally:
            switch.select(found)
