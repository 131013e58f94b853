"""A stage for servers: what is built on it comes down in the right order, the servers first, then the host's settings.

    with Stage() as stage:
        server = stage.cluster(shared_buffers="128MB")
        stage.pool(2 * MB, server.pages_needed(2 * MB))
        server.start()
"""

from contextlib import ExitStack
from typing import Any

from harness.cgroup import Cgroup, hugetlb_cgroup
from harness.cluster import Cluster
from harness.lock import host_lock
from harness.pool import Pool, borrowed_pool
from harness.signals import undisturbed
from harness.thp import ShmemThp, borrowed_shmem_thp


class Stage:
    """A context manager that has the host to itself and leaves it as it was."""

    def __enter__(self) -> "Stage":
        self._host, self._clusters = ExitStack(), ExitStack()
        self._host.enter_context(host_lock())
        return self

    def __exit__(self, *exception: Any) -> None:
        with undisturbed():
            try:
                self._clusters.close()
            finally:
                self._host.close()

    def cluster(self, **settings: Any) -> Cluster:
        """A new cluster, not started; arguments as for Cluster."""
        return self._clusters.enter_context(Cluster(**settings))

    def pool(self, page_size: int, available: int, overcommit: int = 0) -> Pool:
        """A pool in which exactly so many pages can be had, see borrowed_pool."""
        return self._host.enter_context(borrowed_pool(page_size, available, overcommit))

    def cgroup(self, outer: Cgroup | None = None) -> Cgroup:
        """A control group with the hugetlb controller."""
        return self._host.enter_context(hugetlb_cgroup(outer))

    def shmem_thp(self, mode: str) -> ShmemThp:
        """The switch of transparent huge pages for shared memory, set to a mode."""
        return self._host.enter_context(borrowed_shmem_thp(mode))
