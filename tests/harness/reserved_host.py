"""The host for one test, without the pages of its pools that nobody uses. At the end the servers stop first, then the host's
settings are restored.

    with ReservedHost() as reserved_host:
        server = reserved_host.cluster(shared_buffers="128MB")
        reserved_host.pool(2 * MB, server.pages_needed(2 * MB))
        server.start()
"""

from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, TypeVar

from harness.cgroup import Cgroup, hugetlb_cgroup
from harness.cluster import Cluster
from harness.lock import host_lock, pool_lock
from harness.pool import Pool, borrowed_pool, pools
from harness.refusal import refusal
from harness.shmem_thp import ShmemThp, borrowed_shmem_thp
from harness.signals import signals_blocked
from harness.small_disk import SmallDisk, small_disk

Held = TypeVar("Held")


class ReservedHost:
    """A context manager: holds the host lock, and restores the host's settings at the end.

    `keep_free_pages`: leave the free pages of the pools in them. `shared`: beside other tests that share the host, which change
    nothing but the pools. `pools`: whether it holds those; else its servers ask for no huge pages.
    """

    def __init__(self, *, keep_free_pages: bool = False, shared: bool = False, pools: bool = True) -> None:
        self._keep_free_pages, self._shared, self.has_pools = keep_free_pages, shared, pools

    def __enter__(self) -> "ReservedHost":
        self._host, self._clusters = ExitStack(), ExitStack()
        self._host.enter_context(host_lock(self._shared))
        try:
            if self.has_pools:
                self._host.enter_context(pool_lock())
                self._take_free_pages()
        except BaseException:
            self._host.close()
            raise
        return self

    def _take_free_pages(self) -> None:
        """Until the end no test finds pages that it did not ask for."""
        if self._keep_free_pages:
            return
        for pool in pools():
            numbers = pool.numbers()
            if not refusal() and (numbers.available > 0 or numbers.overcommit > 0):
                self._host.enter_context(borrowed_pool(pool.page_size, 0))
            elif numbers.available > 0:
                # Whoever may not take pages out of a pool may reserve them, unless a cgroup allows this container none.
                with suppress(OSError):
                    self._host.enter_context(pool.reserve(numbers.available))

    def __exit__(self, *exception: Any) -> None:
        with signals_blocked():
            try:
                self._clusters.close()
            finally:
                self._host.close()

    def cluster(self, **settings: Any) -> Cluster:
        """A new cluster, not started; takes the arguments of Cluster."""
        if not self.has_pools:
            settings = {"huge_pages": False, **settings}
            assert settings["huge_pages"] in (False, "off"), "a test without the pools would take pages of another one"
        return self._clusters.enter_context(Cluster(**settings))

    def pool(self, page_size: int, available: int, overcommit: int = 0) -> Pool:
        """A pool with exactly this many available pages; see borrowed_pool."""
        assert self.has_pools
        return self._host.enter_context(borrowed_pool(page_size, available, overcommit))

    def cgroup(self, outer: Cgroup | None = None, name: str = "") -> Cgroup:
        """A control group with the hugetlb controller."""
        return self._host.enter_context(hugetlb_cgroup(outer, name))

    def hold(self, change: AbstractContextManager[Held]) -> Held:
        """Make any other change, which its context manager takes back when the servers have stopped."""
        return self._host.enter_context(change)

    def small_disk(self, cluster: Cluster) -> SmallDisk:
        """Move a stopped cluster's data directory to a file system of its own, to be filled."""
        return self._clusters.enter_context(small_disk(cluster))

    def shmem_thp(self, mode: str) -> ShmemThp:
        """Set the mode of transparent huge pages for shared memory."""
        return self._host.enter_context(borrowed_shmem_thp(mode))
