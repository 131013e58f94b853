"""`./dev bench`: tables, and targets that are met or missed, from numbers that need no server; and the smallest run on servers."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import Cluster, Install
from harness.poll import until
from harness.units import GB, MB

import build
import parts
import scrape
import status
from report import Target

REPOSITORY = Path(__file__).parents[2]


def of_status(what: str, ratio: float, **details: int) -> dict[str, Any]:
    return {"pages": "base", "preloaded": "no", "size": 128 * MB, "what": what, "ratio": ratio,
            "microseconds": {"ours": 50 * ratio, "activity": 50.0}, **details}


STATUS = [of_status("1 session", 0.8, sessions=1), of_status("12 GB", 0.84, sessions=100, size=12 * GB), of_status("reloaded", 1.9)]
BACKENDS = [{"pages": pages, "sessions": 10, "size": 128 * MB, "missing": {}, "microseconds": 200.0, "of_bare": 1.1,
             "times": {"pg_proctab": faster}} for pages, faster in (("base", 1.5), ("huge", 1.2))]


@pytest.mark.parametrize("name", parts.PARTS)
def test_each_part_has_its_place_in_the_docs(name):
    page = (REPOSITORY / parts.PARTS[name].page).read_text()
    assert page.count(f"<!-- {name} -->\n") == page.count(f"\n<!-- /{name} -->") == 1


def test_a_target_is_compared_as_it_is_printed():
    assert str(Target("the ratio", 2.004, 2)) == "met: the ratio: 2, at most 2"
    assert str(Target("the ratio", 2.006, 2)) == "missed: the ratio: 2.01, at most 2"
    assert str(Target("pmap / ours", 19.9, 20, is_least=True)) == "missed: pmap / ours: 19.9, at least 20"


def test_targets_of_all_cases():
    """The case nearest to its bound counts; a reload is no change of sessions or size."""
    assert list(map(str, parts.PARTS["status"].targets(STATUS))) == [
        "met: the largest ratio: 1.9, at most 2",
        "met: largest / smallest ratio of a column from 1 to 100 sessions and 128 MB to 12 GB: 1.05, at most 1.2"]
    assert [target.is_met for target in parts.PARTS["status"].targets([*STATUS, of_status("reloaded twice", 2.1)])] == [False, True]
    assert [target.is_met for target in parts.PARTS["status"].targets([*STATUS, of_status("5000 sessions", 1.0, sessions=5000)])] == [True, False]
    assert list(map(str, parts.PARTS["backends"].targets(BACKENDS))) == [
        "met: hugepage_backends / bare reads, the largest ratio: 1.1, at most 1.5",
        "met: the fastest of the others (pg_proctab) / hugepage_backends, the smallest ratio: 1.2, at least 1"]


def test_what_this_host_could_not_hold_fails():
    skipped = {"pages": "huge", "preloaded": "no", "size": 12 * GB, "skipped": "no memory"}
    part = parts.PARTS["status"]
    assert not part.fails(STATUS) and part.fails([*STATUS, skipped]) and part.fails([*STATUS, of_status("reloaded twice", 2.1)])
    assert "not measured: no memory" in part.show([*STATUS, skipped])


def test_write_one_part_and_leave_the_others(tmp_path):
    for _ in range(2):
        parts.write(tmp_path, "status", STATUS, "Measured by us.")
    parts.write(tmp_path, "backends", BACKENDS, "Measured later.")
    page = (tmp_path / "bench/measured.md").read_text()
    assert "<!-- status -->\nMeasured by us.\n\n- met: the largest ratio: 1.9, at most 2.\n" in page
    assert page.count("Measured by us.") == page.count("Measured later.") == 1
    before = (parts.ROOT / "bench/measured.md").read_text()
    assert page.split("<!-- scrape -->")[1] == before.split("<!-- scrape -->")[1]


def test_on_servers(monkeypatch, root):
    """Each case of hugepage_status and of a scrape has its row, within a terminal of 80 columns."""
    for part in (status, scrape):
        monkeypatch.setattr(part, "PAGES", {"base": False})
    monkeypatch.setattr(status, "PRELOADED", {"no": ""})
    monkeypatch.setattr(scrape, "QUICK_SESSIONS", (2,))
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        build.build(Install.find(), Path(work))
        of_status, of_scrape = (list(part.rows_of(Path(work), True)) for part in (status, scrape))
        with Cluster(huge_pages=False, shared_buffers="16MB", autovacuum=False) as cluster:
            build.prepare(cluster.start(), Path(work))
            # The bare reads find what hugepage_backends finds, once no process is about to end.
            until("the same page tables", lambda: len(set(cluster.sql(
                "SELECT read_status_files() AS bare, sum(page_tables) AS ours FROM hugepage_backends")[0].values())) == 1)
    assert not any("skipped" in result for result in of_status + of_scrape)
    assert len(of_status) == 7 and all(result["ratio"] > 0 for result in of_status)
    assert of_scrape[0]["ratio"] > 1
    shown = parts.PARTS["status"].table(of_status) + "\n" + parts.PARTS["scrape"].table(of_scrape)
    assert "reloaded, another shared_buffers" in shown and max(map(len, shown.splitlines())) <= 80
