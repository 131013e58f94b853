"""Fixtures of the lab's scenarios. They run in a guest, which they have for themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from captures import keep_capture
from instance import sidecar_row

from harness import sidecar
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
def check_both(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Check columns of hugepage_status, and the same of the sidecar's row but for `of_sidecar`; the view's row.

    A capture of the guest says the same. The first one of each machine is kept.
    """

    def check(cluster: Cluster, of_sidecar: dict[str, Any] | None = None, **expected: Any) -> dict[str, Any]:
        row = checked_status(cluster, **expected)
        wanted = {**expected, **(of_sidecar or {})}
        tree = tmp_path / f"host-{len(list(tmp_path.glob('host-*')))}"
        captured = sidecar.run("capture", tree)
        assert captured.status == sidecar.OK, captured
        for instance in (sidecar_row(), sidecar_row(tree)):
            assert {name: instance[name] for name in wanted} == wanted, instance
        keep_capture(request.path.stem.removeprefix("test_"), tree, wanted)
        return row

    return check
