"""Huge page pools of any page size, resized for the length of a block and restored.

Pages that other processes hold stay theirs: a borrowed pool has those pages plus the ones that the test asked for.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.lock import pool_lock
from harness.poll import until
from harness.processes import run
from harness.units import GB, KB

POOLS = Path("/sys/kernel/mm/hugepages")


class PoolError(Exception):
    """The kernel did not allocate as many huge pages as a test needs, or could not free them."""


class NoGigabyte(PoolError):
    """No free gigabyte of memory lies in one piece, as is usual on a machine that has been up for a while."""


@dataclass(frozen=True)
class PoolNumbers:
    """Counts of pages under the kernel's names."""

    nr: int
    free: int
    resv: int
    surplus: int
    overcommit: int

    @property
    def available(self) -> int:
        """Pages that are neither in use nor reserved."""
        return self.free - self.resv

    @property
    def held(self) -> int:
        """Pages in use or reserved."""
        return self.nr - self.available


class Pool:
    """The pool of one huge page size (bytes)."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.directory = POOLS / f"hugepages-{page_size // KB}kB"

    def numbers(self) -> PoolNumbers:
        """The kernel's counters now."""
        names = ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages")
        return PoolNumbers(*(int((self.directory / name).read_text()) for name in names))

    def resize(self, nr: int) -> None:
        """Set nr_hugepages, as `sysctl vm.nr_hugepages=N` does; PoolError if the kernel allocates fewer."""
        # drop_caches=3 also frees dentries and inodes, which keep gigabytes from being in one piece.
        for preparations in ({}, {"compact_memory": 1}, {"drop_caches": 3, "compact_memory": 1}):
            for name, value in preparations.items():
                Path("/proc/sys/vm", name).write_text(str(value))
            self._write("nr_hugepages", nr)
            persistent = self.persistent()
            if persistent == nr:
                return
        kept = f"asked for {nr} huge pages of {self.page_size // KB} kB, the kernel keeps {persistent}"
        if self.page_size == GB and persistent < nr:
            raise NoGigabyte(f"1 GB pages were not tried: the memory has no free gigabyte in one piece ({kept})")
        raise PoolError(kept)

    def persistent(self) -> int:
        """Pages of the pool without surplus pages, which the kernel frees after use."""
        numbers = self.numbers()
        return numbers.nr - numbers.surplus

    def overcommit(self, pages: int) -> None:
        """Set nr_overcommit_hugepages; the kernel refuses to write it for gigantic pages (1 GB), even a zero."""
        if self.numbers().overcommit != pages:
            self._write("nr_overcommit_hugepages", pages)

    def reserve(self, pages: int) -> mmap.mmap:
        """A mapping of pages that are reserved and not touched; OSError if so many are not available (mmap(2))."""
        map_hugetlb, size = 0x40000, (self.page_size.bit_length() - 1) << 26
        return mmap.mmap(-1, pages * self.page_size, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | map_hugetlb | size)

    def _write(self, name: str, value: int) -> None:
        (self.directory / name).write_text(str(value))


def pools() -> list[Pool]:
    """A pool for each huge page size of this kernel."""
    sizes = (entry.name.removeprefix("hugepages-").removesuffix("kB") for entry in POOLS.glob("hugepages-*kB"))
    return [Pool(int(kilobytes) * KB) for kilobytes in sizes]


@contextmanager
def borrowed_pool(page_size: int, available: int, overcommit: int = 0) -> Iterator[Pool]:
    """A pool with exactly `available` available pages (and `overcommit` surplus ones) until the block ends.

    Servers that use the pages have to stop before that; harness.reserved_host stops them.
    """
    with pool_lock():
        # As `apply` does: from now on nobody takes it for what the boot made.
        with suppress(OSError):
            Path("/run/hugepage-sidecar.applied").touch()
        pool = Pool(page_size)
        found = pool.numbers()
        asked = found.nr - found.surplus
        try:
            pool.overcommit(overcommit)
            pool.resize(found.held + available)
            yield pool
        finally:
            _give_back(pool, asked, found)


def _give_back(pool: Pool, asked: int, found: PoolNumbers) -> None:
    try:
        until("the borrowed huge pages to be free again", lambda: pool.numbers().held <= found.held, seconds=10)
    except TimeoutError as error:
        # Another process took pages: leave it those.
        pool.resize(max(asked, pool.numbers().held))
        raise PoolError(f"huge pages of {pool.page_size // KB} kB are still in use: {pool.numbers()}") from error
    finally:
        pool.overcommit(found.overcommit)
    pool.resize(asked)


@contextmanager
def hugetlbfs(point: Path, page_size: int) -> Iterator[Path]:
    """Mount a hugetlbfs at `point`, a directory to be made, until the block ends."""
    point.mkdir()
    run("mount", "-t", "hugetlbfs", "-o", f"pagesize={page_size // KB}K,mode=1777", "none", point)
    try:
        yield point
    finally:
        run("umount", point)
