"""`./dev bench --only headlines`: pictures and sentences from numbers that need no server, and one point of each from a server."""

import tempfile
from pathlib import Path

import pytest

from harness.cluster import Install
from harness.units import GB, MB

import build
import headlines
import pictures


def turns(figure: str, size: int, base: list[float], huge: list[float], **case: int) -> list[headlines.Point]:
    return [{"figure": figure, "size": size, "pages": pages, "value": value, **case}
            for pages, values in (("base", base), ("2 MB", huge)) for value in values]


POINTS = [*turns("page tables", GB, [20 * MB], [4 * MB], sessions=10), *turns("page tables", GB, [2100 * MB], [90 * MB], sessions=1000),
          *turns("login", GB, [0.25, 0.27, 0.26], [0.11, 0.10, 0.12]),
          *turns("first touch", GB, [3.0, 3.4, 3.1], [3.1, 3.3, 3.0]),
          *({"pages": "1 GB", "size": GB, "what": what, "skipped": "the memory has no free gigabyte"} for what in ("turn 2 of 2", "many sessions")),
          {"pages": "base", "size": GB, "what": "2000 sessions", "skipped": "the memory of this machine does not hold them"}]


def test_the_page():
    """Of many sessions the most, and where nothing differs that is marked."""
    assert pictures.table(POINTS)[2:] == [
        "| page tables, 1000 sessions | 1 GB | 2.05 GB | 90 MB | - |", "| login | 1 GB | 260 ms | 110 ms | - |",
        "| first touch | 1 GB | 3.10 s | 3.10 s = | - |"]
    part = pictures.measured_part(POINTS)
    assert all(row in part for row in pictures.table(POINTS))
    assert "Not measured with 1 GB of shared_buffers in 1 GB pages (turn 2 of 2, many sessions): the memory has no free gigabyte." in part
    assert "Not measured with 1 GB of shared_buffers in base pages (2000 sessions): the memory of this machine does not hold them." in part
    assert part.count("![") == 3 and "Random reads" not in part


@pytest.mark.parametrize(("huge", "expected"), [([2.0, 2.1], True), ([0.9, 2.0], False), ([1.02, 1.03], False)])
def test_a_difference_is_beyond_the_turns(huge, expected):
    assert headlines.differ([1.0, 1.01], huge) == expected


def test_pictures(tmp_path):
    written = pictures.draw(tmp_path, POINTS)
    assert sorted(path.name for path in written) == ["login.svg", "page-tables.svg", "restart.svg"]
    assert "2 MB pages" in (tmp_path / "login.svg").read_text()
    # No line leaves its panel.
    two = [*turns("page tables", GB, [20 * MB], [4 * MB], sessions=10), *turns("page tables", 4 * GB, [80 * MB], [4 * MB], sessions=10)]
    figure = pictures.lines(pictures.matplotlib(), pictures.PICTURES[0], two)
    assert all(axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 80 for axes in figure.axes)


def test_a_server(monkeypatch):
    """Each figure has a point on a small server in base pages."""
    class Small(headlines.Plan):
        def __init__(self, quick: bool) -> None:
            super().__init__(quick)
            self.sizes, self.sessions, self.cache_sessions = [16 * MB], [2], 2
            self.turns, self.logins, self.seconds = 1, 1, 0.2

    monkeypatch.setattr(headlines, "Plan", Small)
    monkeypatch.setattr(headlines, "KINDS", {"base": None})
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        build.build(Install.find(), Path(work))
        points = list(headlines.rows_of(Path(work), quick=True))
    assert not [point for point in points if "skipped" in point]
    figures = {figure for picture in pictures.PICTURES for figure in picture.figures}
    assert {point["figure"] for point in points} == figures and all(point["value"] > 0 for point in points)
