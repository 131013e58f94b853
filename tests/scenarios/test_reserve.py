"""hugepage-sidecar reserve: who is counted gets its pages before it starts, and no pool is reduced. tests/lab/debian_boot.py boots so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.units import MB

pytestmark = pytest.mark.any_major

TOLD = Path("/etc/hugepage-sidecar/postgresql-data")
LEFT = Path("/run/hugepage-sidecar/reserved")


@pytest.fixture
def told(root) -> Iterator[Path]:
    """The file of directories that root lists, and what reserve leaves; both are put back after the test."""
    found = {file: file.read_bytes() if file.exists() else None for file in (TOLD, LEFT)}
    is_new = not TOLD.parent.exists()
    TOLD.parent.mkdir(exist_ok=True)
    try:
        yield TOLD
    finally:
        for file, content in found.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)
        if is_new:
            TOLD.parent.rmdir()


def test_a_stopped_server_gets_its_pages(new_cluster, pool, told):
    server: Cluster = new_cluster(huge_pages="on")
    small = pool(2 * MB, 10)
    needed = server.pages_needed(2 * MB)
    told.write_text(f"# ours\n{server.data}/\n")
    answer = sidecar.run("reserve")
    assert f"counted: {server.data}, {needed} pages" in answer.stdout, answer
    assert small.numbers().free >= needed
    assert LEFT.read_text().split("\n")[0] == f"2048 {small.persistent()}"
    server.start()
    server.stop()
    # What the pool has besides stays.
    small.resize(small.persistent() + 50)
    before = small.persistent()
    assert f"the pool has {before}" in sidecar.run("reserve").stdout
    assert small.persistent() == before
    # What was told and is not there is said.
    told.write_text("/nowhere\n")
    answer = sidecar.run("reserve")
    assert answer.status == sidecar.UNKNOWN and "not counted: /nowhere: " in answer.stdout
    assert small.persistent() == before
