"""Fixtures of the lab's scenarios. They run in a guest, which they have for themselves."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from instance import sidecar_row

from harness.cluster import Cluster
from harness.controllers import ControlGroup, control_group, hugetlb_accounting
from harness.node_pools import pages_on
from harness.reserved_host import ReservedHost
from harness.status import checked_status


@pytest.fixture
def reserved_host() -> Iterator[ReservedHost]:
    """The guest, reserved for one test, with the pages that were reserved at boot: given back, they may not be had again."""
    with ReservedHost(keep_free_pages=True) as reserved_host:
        yield reserved_host


@pytest.fixture
def group(reserved_host: ReservedHost) -> Callable[..., ControlGroup]:
    """control_group for the rest of the test."""
    return lambda **files: reserved_host.hold(control_group(**files))


@pytest.fixture
def node_pool(reserved_host: ReservedHost) -> Callable[[dict[int, int]], None]:
    """pages_on for the rest of the test."""
    return lambda nodes: reserved_host.hold(pages_on(nodes))


@pytest.fixture
def accounting(reserved_host: ReservedHost) -> Callable[[bool], None]:
    """hugetlb_accounting for the rest of the test."""
    return lambda on: reserved_host.hold(hugetlb_accounting(on))


@pytest.fixture
def check_both() -> Callable[..., dict[str, Any]]:
    """Check columns of hugepage_status, and the same of the sidecar's row but for `of_sidecar`; the view's row."""

    def check(cluster: Cluster, of_sidecar: dict[str, Any] | None = None, **expected: Any) -> dict[str, Any]:
        row = checked_status(cluster, **expected)
        wanted = {**expected, **(of_sidecar or {})}
        instance = sidecar_row()
        assert {name: instance[name] for name in wanted} == wanted, instance
        return row

    return check
