"""A kernel without pools of huge pages: nothing is promised, nothing fails."""

from pathlib import Path

import pytest
from instance import sidecar_row

from harness.cluster import StartFailed
from harness.smaps import shared_mappings
from harness.status import create_extension


@pytest.fixture(autouse=True)
def no_pools():
    assert "Hugepagesize" not in Path("/proc/meminfo").read_text()


def test_base_pages_and_why(new_cluster):
    server = create_extension(new_cluster().start())
    [row] = server.sql("SELECT * FROM hugepage_status")
    instance = sidecar_row()
    assert {mapping.page_size for mapping in shared_mappings(server.postmaster)} == {4096}
    for shown in (row, instance):
        assert (shown["landed_in"], shown["cause"], shown["restart_outlook"]) == ("base", "page_size_unsupported", "base"), shown
        assert "nr_hugepages=" not in (shown["hint"] or ""), shown


def test_huge_pages_on_does_not_start_as_foretold(new_cluster):
    server = create_extension(new_cluster().start())
    server.conf(huge_pages=True)
    [preflight] = server.sql("SELECT will_start FROM hugepage_preflight()")
    assert preflight == {"will_start": False}
    with pytest.raises(StartFailed):
        server.restart()
