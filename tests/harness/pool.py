"""Huge page pools of any size, borrowed from the kernel and given back.

Pages that something else on the host holds stay untouched: a borrowed pool is what it holds plus what was asked for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.lock import host_lock
from harness.poll import until
from harness.units import KB

POOLS = Path("/sys/kernel/mm/hugepages")


class PoolError(Exception):
    """The kernel did not give as many huge pages as a test needs, or did not take them back."""


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
        """Pages that nobody uses and nobody was promised."""
        return self.free - self.resv

    @property
    def held(self) -> int:
        """Pages in use or promised."""
        return self.nr - self.available


class Pool:
    """The pool of one huge page size (bytes)."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.directory = POOLS / f"hugepages-{page_size // KB}kB"

    def numbers(self) -> PoolNumbers:
        """What the kernel says now."""
        names = ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages", "nr_overcommit_hugepages")
        return PoolNumbers(*(int((self.directory / name).read_text()) for name in names))

    def resize(self, nr: int) -> None:
        """Set nr_hugepages, as `sysctl vm.nr_hugepages=N` would; PoolError if the kernel gives fewer."""
        for preparations in ((), ("compact_memory",), ("drop_caches", "compact_memory")):
            for preparation in preparations:
                Path("/proc/sys/vm", preparation).write_text("1")
            self._write("nr_hugepages", nr)
            persistent = self.persistent()
            if persistent == nr:
                return
        raise PoolError(f"asked for {nr} huge pages of {self.page_size // KB} kB, the kernel keeps {persistent}")

    def persistent(self) -> int:
        """Pages that stay when they are freed: the number last asked for, if the kernel had the memory."""
        numbers = self.numbers()
        return numbers.nr - numbers.surplus

    def overcommit(self, pages: int) -> None:
        """Set nr_overcommit_hugepages; gigantic pages (1 GB) have none, and refuse even a zero."""
        if self.numbers().overcommit != pages:
            self._write("nr_overcommit_hugepages", pages)

    def _write(self, name: str, value: int) -> None:
        (self.directory / name).write_text(str(value))


def pools() -> list[Pool]:
    """Every huge page size this kernel offers."""
    sizes = (entry.name.removeprefix("hugepages-").removesuffix("kB") for entry in POOLS.glob("hugepages-*kB"))
    return [Pool(int(kilobytes) * KB) for kilobytes in sizes]


@contextmanager
def borrowed_pool(page_size: int, available: int, overcommit: int = 0) -> Iterator[Pool]:
    """A pool in which exactly `available` pages can be had (and `overcommit` surplus ones), until the block ends.

    Servers that use the pages have to stop before the block ends; harness.stage sees to that.
    """
    with host_lock():
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
        # Somebody took pages meanwhile: leave them those.
        pool.resize(max(asked, pool.numbers().held))
        raise PoolError(f"huge pages of {pool.page_size // KB} kB are still in use: {pool.numbers()}") from error
    finally:
        pool.overcommit(found.overcommit)
    pool.resize(asked)
