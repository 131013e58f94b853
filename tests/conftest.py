"""Fixtures over the harness, and the guard that nothing of ours is left behind on the host."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("harness.status")

from harness.cgroup import Cgroup, cgroup2_mount
from harness.cluster import Cluster, Install, Unsupported
from harness.lock import host_lock
from harness.oracle import Oracle
from harness.pool import Pool, pools
from harness.processes import working_below
from harness.rig import Rig
from harness.signals import unwind_on_signals
from harness.stage import Stage
from harness.status import EXTENSION
from harness.thp import ShmemThp
from harness.witness import segments


def pytest_sessionstart() -> None:
    unwind_on_signals(lambda status: pytest.exit("terminated", returncode=status))
    install = Install.find()
    if not install.has_extension(EXTENSION):
        pytest.exit(f"{EXTENSION} is not installed into {install.ask('version')} ({install.pg_config}): "
                    "run `make install` first", returncode=4)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """As root nothing may be skipped: a scenario that cannot be staged has failed. Only PostgreSQL or the distribution may lack something."""
    outcome = yield
    report = outcome.get_result()
    if call.excinfo and call.excinfo.errisinstance(Unsupported):
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], str(call.excinfo.value))
    elif report.skipped and os.geteuid() == 0:
        report.outcome = "failed"


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """At the end of the session the host is as it was found."""
    found = _host()
    yield
    assert _host() == found


def _host() -> dict[str, Any]:
    cgroups = cgroup2_mount()
    with host_lock():
        return {
            "pools": {pool.page_size: (pool.persistent(), pool.numbers().overcommit) for pool in pools()},
            "shmem_enabled": ShmemThp().mode(),
            "cgroups": sorted(cgroups.glob("pg_hugepages*")) if cgroups else None,
            "controllers": (cgroups / "cgroup.subtree_control").read_text() if cgroups else None,
            "servers": list(working_below(Cluster.roots)),
            "directories": [root for root in Cluster.roots if root.exists()],
        }


@pytest.fixture
def stage() -> Iterator[Stage]:
    """The host to itself for one test."""
    with Stage() as stage:
        yield stage


@pytest.fixture
def new_cluster(stage: Stage) -> Callable[..., Cluster]:
    """Stage.cluster: makes a cluster, not started, that is removed after the test."""
    return stage.cluster


@pytest.fixture
def root() -> None:
    """For what changes the host."""
    if os.geteuid() != 0:
        pytest.skip("nothing that changes huge pages of the host or traces a server was tried: run ./dev as root or with sudo")


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One server for all tests of a module, and the host to itself for as long."""
    if os.geteuid() != 0:
        pytest.skip("nothing that changes huge pages of the host was tried: run ./dev as root or with sudo")
    with Stage() as stage:
        yield Rig(stage)


@pytest.fixture
def pool(stage: Stage, root: None) -> Callable[..., Pool]:
    """Stage.pool: sizes a pool for the rest of the test."""
    return stage.pool


@pytest.fixture
def cgroup(stage: Stage, root: None) -> Callable[..., Cgroup]:
    """Stage.cgroup: makes a control group for the rest of the test."""
    return stage.cgroup


@pytest.fixture
def thp(stage: Stage, root: None) -> Callable[[str], ShmemThp]:
    """Stage.shmem_thp: sets the switch for the rest of the test."""
    return stage.shmem_thp


@pytest.fixture
def oracle(stage: Stage, root: None) -> Iterator[Oracle]:
    """An ORACLE_BASE for stand-ins; afterwards none of their segments is left, and /dev/shm has the files it had."""
    files = _files_of_stand_ins()
    with Oracle() as oracle:
        yield oracle
    made = {shmid for instance in oracle.instances for shmid in instance.shmids}
    assert not made & segments().keys() and _files_of_stand_ins() == files


def _files_of_stand_ins() -> list[Path]:
    return sorted(Path("/dev/shm").glob("ora_*"))
