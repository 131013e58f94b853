"""The servers that are measured: throwaway ones, on base or on huge pages, with many idle sessions."""

import os
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import build
from harness.cluster import Cluster, Install, rows
from harness.kernel import meminfo
from harness.poll import until
from harness.pool import PoolError
from harness.processes import alive
from harness.reserved_host import ReservedHost
from harness.units import GB, MB

PAGES = {"base": False, "huge": True}
"""What the server lands in, and its setting huge_pages: off, or on so that it can't land elsewhere."""

OF_SESSION, BASE_PER_TABLE = 3 * MB, 512
"""What a session takes, and of how many bytes a byte of page tables maps base pages."""

LANDED = {"base": "base", "huge": "hugetlb"}


class Skipped(Exception):
    """This host can't hold what was to be measured; the message says why."""


@contextmanager
def server(size: int, pages: str, sessions: int, directory: Path, preload: str = "",
           page_size: int | None = None, install: Install | None = None, touching: bool = True, **settings: Any) -> Iterator[Cluster]:
    """A running server with shared_buffers of `size` bytes and room for so many sessions; Skipped if it has no place.

    `preload`: its shared_preload_libraries. `page_size`: of its huge pages, instead of the default size. `touching`:
    each session will touch all of shared_buffers, so that in base pages it has page tables of its own.
    """
    own_tables = 0 if PAGES[pages] or not touching else size // BASE_PER_TABLE
    wanted = size + size // 8 + sessions * (OF_SESSION + own_tables)
    available = meminfo()["MemAvailable"]
    if available < wanted:
        raise Skipped(f"it takes {wanted / GB:.1f} GB of memory, {available / GB:.1f} GB are available")
    with ReservedHost() as reserved_host:
        settings = {"max_wal_size": "64MB", "shared_preload_libraries": preload, **settings}
        cluster = reserved_host.cluster(install=install, shared_buffers=f"{size // MB}MB", max_connections=sessions + 20,
                                        autovacuum=False, huge_pages=PAGES[pages], superuser_reserved_connections=3, **settings)
        if PAGES[pages]:
            if page_size:
                cluster.conf(huge_page_size=f"{page_size // MB}MB")
            page_size = page_size or meminfo()["Hugepagesize"]
            try:
                reserved_host.pool(page_size, cluster.pages_needed(page_size))
            except (PoolError, PermissionError) as error:
                raise Skipped(f"no huge pages: {error}") from error
        cluster.start()
        build.prepare(cluster, directory)
        landed = cluster.sql("SELECT landed_in FROM hugepage_status")[0]["landed_in"]
        if landed != LANDED[pages]:
            raise Skipped(f"the server landed in {landed} pages")
        yield cluster


class IdleSessions:
    """Idle sessions of a server, which end with it."""

    def __init__(self, cluster: Cluster, touching: bool = False) -> None:
        """`touching`: each first touches all of shared_buffers, and has the page tables to show for it."""
        self._cluster, self._touching = cluster, touching
        self._sessions: list[Any] = []

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._sessions)

    def grow(self, size: int) -> "IdleSessions":
        """Open sessions until the server has so many of these."""
        allow_open_files(size + 100)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cpus:
            self._sessions += cpus.map(lambda _number: self._open(), range(size - len(self._sessions)))
        pids = [session.info.backend_pid for session in self._sessions]
        count = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND pid = ANY (%s)"
        until(f"{size} sessions to be idle", lambda: self._cluster.sql(count, pids)[0]["count"] == size)
        return self

    def _open(self) -> Any:
        session = self._cluster.connect()
        if self._touching:
            rows(session, "SELECT touch_shared_buffers()")
        return session

    def close(self) -> None:
        """End them, and wait until they are gone: over 30 s with 1,000 that have mapped 4 GB in base pages."""
        pids = [session.info.backend_pid for session in self._sessions]
        while self._sessions:
            self._sessions.pop().close()
        until("the sessions to be gone", lambda: not any(map(alive, pids)), 30 + len(pids))


def allow_open_files(count: int) -> None:
    """As many descriptors of this process as its sessions need; those of servers stay as they are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard) if hard != resource.RLIM_INFINITY else count, hard))


def process_ids(cluster: Cluster) -> list[int]:
    """The server's live processes by the kernel's account: the postmaster and its children."""
    postmaster = cluster.postmaster
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *filter(alive, map(int, children))]
