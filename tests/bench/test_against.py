"""`./dev bench --against REV`: a build that takes longer is told, with an exit status that is not zero."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install

import against
import build
import measure
import run

SLOWER = "CREATE OR REPLACE VIEW hugepage_status AS SELECT s.* FROM hugepage_status() s, " \
         "(SELECT count(*) FROM generate_series(1, 20000)) slow"


@pytest.fixture
def builds() -> Iterator[dict[str, Cluster]]:
    """Two servers of the same build."""
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work, ExitStack() as stack:
        build.build(Install.find(), Path(work))
        clusters = {name: stack.enter_context(Cluster(huge_pages=False, shared_buffers="16MB")) for name in ("this", "other")}
        for cluster in clusters.values():
            build.prepare(cluster.start(), Path(work))
        yield clusters


def test_a_slower_build_is_told(builds, monkeypatch):
    monkeypatch.setattr(against, "QUERIES", dict(list(against.QUERIES.items())[:2]))
    builds["this"].sql(SLOWER)
    status, backends = against.compared(builds, quick=True)
    assert status["ratio"] > against.MOST_RATIO and status["microseconds"]["this"] > status["microseconds"]["other"]
    assert against.exceeds([status])
    # The other way round it is faster.
    [faster] = [result for result in against.compared(dict(zip(builds, reversed(builds.values()))), quick=True) if result["name"] == "hugepage_status"]
    assert faster["ratio"] < 1 and not against.exceeds([faster])
    low, high = backends["spread"]
    assert 0 < low <= backends["ratio"] <= high


@pytest.fixture
def command(monkeypatch) -> Callable[[list[dict]], int]:
    """The command, with results that were measured before."""
    monkeypatch.setattr(build, "build", lambda *arguments: None)
    monkeypatch.setattr(measure, "one_cpu", nullcontext)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--against", "HEAD", "--other", str(Install.find().pg_config)])

    def main(results: list[dict]) -> int:
        monkeypatch.setattr(against, "rows_of", lambda *arguments: iter(results))
        return run.main()

    return main


@pytest.mark.parametrize(("ratio", "expected"), [(1.05, 0), (1.2, 1)])
def test_the_exit_status(command, capsys, ratio, expected):
    results = [{"name": "hugepage_status", "microseconds": {"this": 100.0 * ratio, "other": 100.0},
                "ratio": ratio, "spread": [ratio - 0.01, ratio + 0.01]}]
    assert command(results) == expected
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hugepage_status")]
    assert f"{ratio:.2f}" in line and line.endswith("slower") == bool(expected) and len(line) <= 80


def test_what_could_not_be_measured_is_no_success(command):
    assert command([{"skipped": "no memory"}]) == 1
    for arguments in (["--against", "HEAD"], ["--against", "HEAD", "--other", "x", "--only", "status"]):
        with pytest.raises(SystemExit):
            run.options(arguments)
