"""The history of a server beside what happened to it."""

import json
import re
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from harness.cluster import Cluster
from harness.units import MB

NAME = "pg_hugepages.history"


ANYWHERE = "[^\n]*"
"""Where a start landed that failed later: a standby, for one, allocates before it compares itself with its primary."""


@dataclass(frozen=True)
class Allocation:
    """One allocation of shared memory, as the kernel shows it. `is_required`: the record must be there; a full disk may lose it,
    and a start that fails may write it."""

    event: str
    landed_in: str
    page_size: int | str
    is_required: bool = True


def assert_equal(server: Cluster, allocations: list[Allocation]) -> None:
    """The views show each allocation once and in order, changes that are changes, and exactly the regressions."""
    rows = server.sql("SELECT * FROM hugepage_history")
    _assert_starts(rows, allocations)
    was_full = any(not one.is_required and one.page_size != ANYWHERE for one in allocations)
    for before, row in zip(rows, rows[1:]):
        if row["event"] == "change":
            assert row["detail"], f"a change without a detail: {row}"
            # What it is a change of may be what a full disk has lost.
            assert was_full or any(before[name] != row[name] for name in _STATE) or "threats from" in row["detail"], (before, row)
    lost = [row for row in rows if row["regression"]]
    if was_full:
        # What a full disk has lost is missing between two records, so only the views are compared.
        shown = server.sql("SELECT recorded_at FROM hugepage_history WHERE regression")
        assert [row["recorded_at"] for row in lost] == [row["recorded_at"] for row in shown]
        return
    expected = [row for before, row in zip([None, *rows], rows) if before and is_regression(before, row)]
    shown = [row["recorded_at"] for row in server.sql("SELECT recorded_at FROM hugepage_history WHERE regression")]
    times = [[row["recorded_at"] for row in some] for some in (expected, lost)]
    assert times[0] == times[1] == shown, f"regressions: {times[0]} expected, history has {times[1]}, view has {shown}"


_STATE = ("landed_in", "page_size", "restart_outlook", "cause", "nr_hugepages")


def _assert_starts(rows: list[dict[str, Any]], allocations: list[Allocation]) -> None:
    """The allocations recorded are those that happened, in their order; one that is not certain may be missing."""
    def text(event: str, landed_in: str, page_size: int | str) -> str:
        return f"{event} {landed_in} {page_size}\n"

    seen = "".join(text(row["event"], row["landed_in"], row["page_size"]) for row in rows
                   if row["event"] in ("start", "crash restart"))
    expected = "".join(f"({text(one.event, one.landed_in, one.page_size)}){'' if one.is_required else '?'}" for one in allocations)
    assert re.fullmatch(expected, seen), f"recorded:\n{seen}happened:\n{expected}"


def is_regression(before: dict[str, Any], row: dict[str, Any]) -> bool:
    """By docs/history.md: other pages than before, or an outlook that has become bad; never with huge_pages = off."""
    if row["cause"] == "disabled":
        return False
    rank = {"hugetlb": 3, "thp": 2, "partial thp": 1, "base": 0}
    was, now = rank[before["landed_in"]], rank[row["landed_in"]]
    smaller = was == now == 3 and row["page_size"] < before["page_size"]
    turned = was == now == 3 and before["restart_outlook"] == "hugetlb" and row["restart_outlook"] in ("base", "fails")
    return was > now or smaller or turned


def set_clock_back(server: Cluster, days: int) -> None:
    """Make all records of a stopped server later, as if the clock had been set back since they were written."""
    path = Path(server.data) / NAME
    if not path.exists():
        return
    owner, lines = path.stat(), []
    for line in path.read_bytes().splitlines():
        record = json.loads(line[9:])
        for name in ("recorded_at", "postmaster_start"):
            time = datetime.fromisoformat(record[name].removesuffix("Z")) + timedelta(days=days)
            record[name] = time.isoformat(timespec="microseconds") + "Z"
        text = json.dumps(record, separators=(",", ":")).encode()
        lines.append(b"%08x " % zlib.crc32(text) + text + b"\n")
    assert owner.st_size < 256 * MB
    with open(path, "r+b") as file:
        file.truncate()
        file.write(b"".join(lines))
