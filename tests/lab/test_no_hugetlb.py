"""A kernel without pools of huge pages: nothing is promised, nothing fails."""

from pathlib import Path

import pytest
from instance import told_by_sidecar

from harness.cluster import StartFailed
from harness.smaps import shared_mappings
from harness.status import create_extension


@pytest.fixture(autouse=True)
def no_pools():
    assert "Hugepagesize" not in Path("/proc/meminfo").read_text()


def test_base_pages_and_why(new_cluster):
    server = create_extension(new_cluster().start())
    [row] = server.sql("SELECT * FROM hugepage_status")
    instance = told_by_sidecar()
    assert {mapping.page_size for mapping in shared_mappings(server.postmaster)} == {4096}
    for told in (row, instance):
        assert (told["landed_in"], told["cause"], told["restart_outlook"]) == ("base", "page_size_unsupported", "base"), told
        assert "nr_hugepages=" not in (told["hint"] or ""), told


def test_huge_pages_on_does_not_start_as_foretold(new_cluster):
    server = create_extension(new_cluster().start())
    server.conf(huge_pages=True)
    [foretold] = server.sql("SELECT will_start FROM hugepage_preflight()")
    assert foretold == {"will_start": False}
    with pytest.raises(StartFailed):
        server.restart()
