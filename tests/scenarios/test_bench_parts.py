"""`./dev bench --docs`: what each part writes into its page, from numbers that need no server."""

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.units import GB, MB

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

import parts

pytestmark = pytest.mark.any_major


def of_status(size: int, ours: float) -> dict[str, Any]:
    times = {"ours": ours, "floor": 30.0, "kernel": 20.0, "empty": 5.0, "at once": 2.0, "opened": 60.0}
    clients = {"select 1": 15.0, "empty": 20.0, "ours": 60.0}
    return {"shared_buffers": size, "pages": "base", "sessions": 1, "microseconds": times, "ratio": ours / 35,
            "strict": ours / 32, "pgbench": {"prepared": clients, "simple": clients}}


def of_backends(sessions: int) -> dict[str, Any]:
    return {"shared_buffers": GB, "pages": "base", "sessions": sessions, "processes": sessions + 5, "page_tables": sessions * MB,
            "microseconds": {"hugepage_backends": 7.0 * (sessions + 5), "hugepage_status": 40.0}, "ratio": {"hugepage_backends": 1.05},
            "missing": {}}


RESULTS = {"status": [of_status(128 * MB, 40.0), of_status(8 * GB, 42.0)], "backends": [of_backends(10), of_backends(500)]}


@pytest.mark.parametrize("name", parts.PARTS)
def test_each_part_has_its_place_in_the_docs(name):
    page = (REPOSITORY / "docs" / parts.PARTS[name].page).read_text()
    assert page.count(f"<!-- {name} -->\n") == page.count(f"\n<!-- /{name} -->") == 1


def test_write_one_part_and_leave_the_others(tmp_path):
    for _ in range(2):
        parts.write(tmp_path, "status", RESULTS["status"], "Measured by us.")
    parts.write(tmp_path, "backends", RESULTS["backends"], "Measured later.")
    page = (tmp_path / "bench.md").read_text()
    assert "<!-- status -->\nMeasured by us.\n\n```\nhugepage_status, in the server" in page
    assert "The goal is missed in 1 of 2 cases: ratios of 1.14 to 1.20. With `once` in place of `empty` they are 1.25 to 1.31. With 8 GB it takes 1.05 times as long as with 128 MB" in page
    assert "The goal is met: ratios of 1.05 to 1.05. With 500 sessions hugepage_status takes 1.00 times as long as with 10, and hugepage_backends 7.0 microseconds" in page
    assert page.count("Measured by us.") == page.count("Measured later.") == 1
    shown = ["status", "memory", "backends"]
    assert all(f"](bench/{name}.svg)" in page and (tmp_path / "bench" / f"{name}.svg").exists() for name in shown)
    before = parts.DOCS / "bench.md"
    assert page.split("<!-- scrape -->")[1] == before.read_text().split("<!-- scrape -->")[1]


def test_what_this_host_could_not_hold_fails():
    skipped = {"shared_buffers": 12 * GB, "pages": "huge", "skipped": "no memory"}
    assert not parts.PARTS["status"].fails(RESULTS["status"])
    assert parts.PARTS["status"].fails([*RESULTS["status"], skipped])
    assert parts.PARTS["sidecar"].fails([{"ratio": 2.0, "memory": 0, "microseconds": {"ours": 1.0, "pmap PID, each": 100.0}}])
