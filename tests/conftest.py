"""Fixtures for the harness, and a check that the tests leave the host unchanged."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.register_assert_rewrite("harness.status")

from harness.cgroup import Cgroup
from harness.cluster import Cluster, Install, Unsupported
from harness.kernel import sysv_segments
from harness.lock import files_lock, host_lock
from harness.oracle import Oracle
from harness.own_programs import own_packages
from harness.pool import NoGigabyte, Pool
from harness.processes import working_below
from harness.refusal import Refused, end_tests_that_change_the_host, need_the_host, refusal
from harness.reserved_host import ReservedHost
from harness.shared_server import SharedServer
from harness.shmem_thp import ShmemThp
from harness.signals import unwind_on_signals
from harness.status import EXTENSION
from harness.undisturbed import BESIDE, HOST, LANE, undisturbed


def pytest_sessionstart() -> None:
    unwind_on_signals(lambda status: pytest.exit("terminated", returncode=status))
    install = Install.find()
    if not install.has_extension(EXTENSION):
        pytest.exit(f"{EXTENSION} is not installed into {install.ask('version')} ({install.pg_config}): "
                    "run `make install` first", returncode=4)
    end_tests_that_change_the_host()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before anything is set up for it, a test ends that is to change a host that may not be changed."""
    if {"root", "shared_server", "shared_server_without_pools"} & set(item.fixturenames):
        need_the_host()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """As root no scenario may be skipped, except where PostgreSQL, the distribution, the memory or a container lacks something."""
    outcome = yield
    report = outcome.get_result()
    if call.excinfo and call.excinfo.errisinstance(Refused):
        # One place for all, so that pytest lists them in one line.
        report.outcome, report.longrepr = "skipped", (refusal.__module__, None, str(call.excinfo.value))
    elif call.excinfo and call.excinfo.errisinstance((NoGigabyte, Unsupported)):
        report.outcome, report.longrepr = "skipped", (str(item.path), item.location[1], str(call.excinfo.value))
    elif report.skipped and os.geteuid() == 0:
        report.outcome = "failed"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Those of this process's lane, if it runs one: first those beside which any of the other lane may run, then those that need the
    host alone, and those that do not care."""
    lane = os.environ.get(LANE)
    if lane:
        lanes = lanes_of_files(items)
        others = [item for item in items if lane != (lanes[item.path] if is_beside(item) else HOST)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    items.sort(key=lambda item: not shares_the_host(item))


SERVER = 5
"""A test with servers of its own takes as long as so many others."""


def lanes_of_files(items: list[pytest.Item]) -> dict[Path, str]:
    """The lane of each file with tests that run beside: the longest first, each to the lane that has least to do."""
    weights: Counter[Path] = Counter()
    for item in filter(is_beside, items):
        weights[item.path] += SERVER if "new_cluster" in item.fixturenames else 1
    lanes, loads = {}, dict.fromkeys(BESIDE, 0)
    for file, weight in sorted(weights.items(), key=lambda each: (-each[1], each[0])):
        lanes[file] = min(loads, key=loads.get)
        loads[lanes[file]] += weight
    return lanes


def needs_nothing(item: pytest.Item) -> bool:
    """Whether it may run beside any other test."""
    return bool(item.get_closest_marker("no_server"))


def shares_the_host(item: pytest.Item) -> bool:
    """Whether tests that do not look at the whole host may run beside this one."""
    is_alone = item.get_closest_marker("whole_host") or "thp" in item.fixturenames
    return bool(item.get_closest_marker("own_servers")) and not is_alone


def needs_the_pools(item: pytest.Item) -> bool:
    """Whether its servers may take huge pages, or other tests may not use them meanwhile."""
    return bool(item.get_closest_marker("quiet_pools") or {"pool", "cgroup", "shared_server", "oracle"} & set(item.fixturenames))


def is_beside(item: pytest.Item) -> bool:
    """Whether it is in a lane beside that of the pools."""
    return needs_nothing(item) or (shares_the_host(item) and not needs_the_pools(item))


@pytest.fixture(scope="session", autouse=True)
def host_unchanged(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check at the end of the session that the host is unchanged; no other run of tests goes on meanwhile."""
    def waits() -> None:
        # What a fixture prints is else kept until its test fails.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print("\nWaiting for another run of tests on this host.", flush=True)

    with undisturbed(waits):
        yield
        left = [root for root in Cluster.roots if root.exists()]
        assert not left and not list(working_below(Cluster.roots)), f"servers were left: {left}"


@pytest.fixture(autouse=True)
def host_held(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test holds the host, alone or as one of those that share it, unless it needs nothing of it."""
    with ExitStack() as locks:
        if not needs_nothing(request.node):
            locks.enter_context(host_lock(shares_the_host(request.node)))
        for mark in ("files_answer", "files_hang"):
            if request.node.get_closest_marker(mark):
                locks.enter_context(files_lock(answer=mark == "files_answer"))
        yield


@pytest.fixture
def reserved_host(request: pytest.FixtureRequest) -> Iterator[ReservedHost]:
    """The host, reserved for one test."""
    shared = shares_the_host(request.node)
    with ReservedHost(shared=shared, pools=not shared or needs_the_pools(request.node)) as reserved_host:
        yield reserved_host


@pytest.fixture
def new_cluster(reserved_host: ReservedHost) -> Callable[..., Cluster]:
    """ReservedHost.cluster: creates a cluster, not started, that is removed after the test."""
    return reserved_host.cluster


@pytest.fixture
def packages() -> Iterator[Install]:
    """This PostgreSQL, with packages that may be replaced. Ask for it before the servers, which are stopped with its programs."""
    root = Path(tempfile.mkdtemp(prefix="pg_hugepages-packages-"))
    try:
        root.chmod(0o755)
        yield own_packages(Install.find(), root)
    finally:
        shutil.rmtree(root)


@pytest.fixture
def root() -> None:
    """For tests that change the host: see pytest_runtest_setup."""


@pytest.fixture(scope="module")
def shared_server(request: pytest.FixtureRequest) -> Iterator[SharedServer]:
    """One server for all tests of a module, which reserves the host for as long."""
    with ReservedHost(shared=bool(request.node.get_closest_marker("own_servers"))) as reserved_host:
        yield SharedServer(reserved_host)


@pytest.fixture(scope="module")
def shared_server_without_pools(request: pytest.FixtureRequest) -> Iterator[SharedServer]:
    """The same in base pages, for tests that share the host."""
    with ReservedHost(shared=True, pools=False) as reserved_host:
        yield SharedServer(reserved_host)


@pytest.fixture
def pool(reserved_host: ReservedHost, root: None) -> Callable[..., Pool]:
    """ReservedHost.pool: sizes a pool for the rest of the test."""
    return reserved_host.pool


@pytest.fixture
def cgroup(reserved_host: ReservedHost, root: None) -> Callable[..., Cgroup]:
    """ReservedHost.cgroup: creates a control group for the rest of the test."""
    return reserved_host.cgroup


@pytest.fixture
def thp(reserved_host: ReservedHost, root: None) -> Callable[[str], ShmemThp]:
    """ReservedHost.shmem_thp: sets the mode for the rest of the test."""
    return reserved_host.shmem_thp


@pytest.fixture
def oracle(reserved_host: ReservedHost, root: None) -> Iterator[Oracle]:
    """An ORACLE_BASE for stand-ins; checks that they leave no segment and no file in /dev/shm."""
    files = _files_of_stand_ins()
    with Oracle() as oracle:
        yield oracle
    made = {shmid for instance in oracle.instances for shmid in instance.shmids}
    assert not made & sysv_segments().keys() and _files_of_stand_ins() == files


def _files_of_stand_ins() -> list[Path]:
    return sorted(Path("/dev/shm").glob("ora_*"))
