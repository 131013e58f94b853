"""A run of tests that no other one disturbs, and that leaves the host as it was: of one process, or of one with lanes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.cgroup import cgroup2_mount
from harness.kernel import memory_of_ended_servers
from harness.lock import host_lock, run_lock
from harness.pool import pools
from harness.refusal import refusal
from harness.shmem_thp import ShmemThp
from harness.traces import LOCK_OF_APPLY, differences, removed_if_new, traces

LANE = "PG_HUGEPAGES_LANE"
"""The environment variable of a process of tests that runs one of the lanes, and whose parent does all of this."""
HOST, BESIDE = "host", ("beside-1", "beside-2")
"""The tests that use the pools of huge pages or need the host alone, and the others, whole files, which run beside them."""


@contextmanager
def undisturbed(waits: Callable[[], object]) -> Iterator[None]:
    """No other run of tests goes on until the end of the block, and then the host is unchanged; `waits` is called if another run
    has to end first."""
    if LANE in os.environ:
        yield
        return
    with run_lock(waits):
        found = _host()
        # `apply` keeps its lock until the next boot, and no other run of tests waits for it.
        with removed_if_new(LOCK_OF_APPLY):
            yield
        now = _host()
    left = differences(found.pop("traces"), now.pop("traces"))
    assert not left and now == found, "\n".join(["the tests left the host as they did not find it:", *left, f"{found} -> {now}"])


def _host() -> dict[str, Any]:
    with host_lock():
        return {
            # What this run may not change may be changed by others meanwhile: a container has no lock on its host.
            **({} if refusal() else _settings()),
            "memory of ended servers": memory_of_ended_servers(),
            "traces": traces(settings=not refusal()),
        }


def _settings() -> dict[str, Any]:
    cgroups = cgroup2_mount()
    return {
        "pools": {pool.page_size: (pool.persistent(), pool.numbers().overcommit) for pool in pools()},
        "shmem_enabled": ShmemThp().mode() if ShmemThp.FILE.exists() else None,
        "cgroups": sorted(cgroups.glob("pg_hugepages*")) if cgroups else None,
        "controllers": (cgroups / "cgroup.subtree_control").read_text() if cgroups else None,
    }
