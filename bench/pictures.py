"""The pictures of headlines.py, each with its sentences, in a part of docs/results.md that is filled from a run's numbers."""

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
from headlines import READERS, Point, differ, values
from report import size as bytes_of

COLORS = {"base": "#b03030", "2 MB": "#336791", "1 GB": "#6aa84f"}


@dataclass(frozen=True)
class Picture:
    """One figure: `unit` is of its values, which `scale` divides and `show` writes for people."""

    name: str
    title: str
    figures: tuple[str, ...]
    unit: str
    show: Callable[[float], str]
    means: str
    scale: float = 1.0
    by: str | None = None
    """What the horizontal axis is: `sessions` or `size`; None for bars."""


def time_of(value: float) -> str:
    """Seconds for people."""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.3g} ms"


PICTURES = (
    Picture("page-tables", "Page tables", ("page tables",), "MB", bytes_of, by="sessions", scale=1 << 20, means=
            "In 4 kB pages each session that has touched all of shared_buffers has page tables of 1/512 of it."),
    Picture("login", "A new session touches all of shared_buffers", ("login",), "ms", time_of, by="size", scale=1e-3, means=
            "The first access of a session to a page, or to a group of 16, costs a page fault."),
    Picture("hits", f"Random reads that hit shared_buffers, {READERS} sessions", ("hits",), "thousand hits/s",
            lambda value: f"{value / 1e3:,.0f} thousand/s", scale=1e3, means=
            "Huge pages need fewer entries in the TLB."),
    Picture("restart", "The first touch after a start, pg_prewarm, a checkpoint and a crash restart", ("first touch", "prewarm", "checkpoint", "crash restart"),
            "s", time_of, means="The first touch zeroes the memory; on a virtual machine it may wait for the hypervisor. The checkpoint "
            "writes half of the table, without fsync."),
    Picture("memory-left", "Memory that is available to the page cache", ("memory left",), "MB", bytes_of, scale=1 << 20, means=
            "Each session has touched all of shared_buffers."),
)


def measured_part(points: list[Point]) -> str:
    """The table, and the pictures with their sentences, for docs/results.md."""
    lines = ["Medians of turns. `=`: no difference from 4 kB pages beyond the spread of the turns.", "", *table(points), ""]
    lines += [line for why in not_measured(points) for line in (why, "")]
    for picture in PICTURES:
        if any(values(points, figure) for figure in picture.figures):
            lines += [f"![{picture.name}](results/{picture.name}.svg)", "", f"**{picture.title}.** {picture.means}", ""]
    return "\n".join(lines)


def not_measured(points: list[Point]) -> list[str]:
    """What this machine could not hold, a sentence for each reason."""
    cases: dict[tuple[int, str, str], list[str]] = {}
    for point in points:
        if "skipped" in point:
            # In parentheses a reason has numbers of its own size.
            why = re.sub(r"^1 GB pages were not tried: | \(.*\)$", "", point["skipped"])
            cases.setdefault((point["size"], point["pages"], why), []).append(point["what"])
    alike: dict[tuple[str, str, str], list[str]] = {}
    for (size, pages, why), what in cases.items():
        alike.setdefault((pages, why, ", ".join(what)), []).append(bytes_of(size))
    return [f"Not measured with {' and '.join(sizes)} of shared_buffers in {pages} pages ({what}): {why}." for (pages, why, what), sizes in alike.items()]


def table(points: list[Point]) -> list[str]:
    """A row for each figure and case that was measured in 4 kB pages."""
    rows = ["| | shared_buffers | 4 kB pages | 2 MB pages | 1 GB pages |", "| --- | --- | --- | --- | --- |"]
    for picture in PICTURES:
        for figure in picture.figures:
            for case in cases(figure, points):
                found = values(points, figure, **case)
                what = f"{figure}, {case['sessions']} sessions" if "sessions" in case else figure
                cells = [cell(picture, found, pages) for pages in COLORS]
                rows.append(f"| {' | '.join([what, bytes_of(case['size']), *cells])} |")
    return rows


def cell(picture: Picture, found: dict[str, list[float]], pages: str) -> str:
    """The median in one kind of pages, and whether it differs; a dash without one."""
    if pages not in found:
        return "-"
    same = pages != "base" and not differ(found["base"], found[pages])
    return picture.show(statistics.median(found[pages])) + " =" * same


def cases(figure: str, points: list[Point]) -> list[dict[str, Any]]:
    """The sizes, and numbers of sessions, at which a figure was measured; of many sessions the most."""
    found: dict[int, dict[str, Any]] = {}
    for point in points:
        if point.get("figure") == figure and "value" in point and point["pages"] == "base":
            case = {name: point[name] for name in ("size", "sessions") if name in point}
            known = found.setdefault(point["size"], case)
            if case.get("sessions", 0) > known.get("sessions", 0):
                found[point["size"]] = case
    return list(found.values())


def draw(directory: Path, points: list[Point]) -> list[Path]:
    """An SVG for each picture; none without matplotlib."""
    pyplot = matplotlib()
    if pyplot is None:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in PICTURES:
        if any(values(points, figure) for figure in picture.figures):
            figure = lines(pyplot, picture, points) if picture.by else bars(pyplot, picture, points)
            written.append(save(pyplot, figure, directory / f"{picture.name}.svg"))
    return written


def save(pyplot, figure, path: Path) -> Path:
    """Write it, and free its memory."""
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    return path


def matplotlib():
    """matplotlib's pyplot for drawing into files, installed if need be."""
    for attempt in (1, 2):
        try:
            import matplotlib
            matplotlib.use("svg")
            matplotlib.rcParams["svg.hashsalt"] = "pg_hugepages"    # the same numbers give the same file
            matplotlib.rcParams["svg.fonttype"] = "none"
            import matplotlib.pyplot
            return matplotlib.pyplot
        except ImportError:
            if attempt == 1:
                peers.install_packages("python3-matplotlib")
    print("bench: no pictures without matplotlib (Debian: python3-matplotlib)")
    return None


def lines(pyplot, picture: Picture, points: list[Point]):
    """A line for each kind of pages, over sessions (a panel for each size) or over sizes."""
    [figure_name] = picture.figures
    sizes = list(dict.fromkeys(point["size"] for point in points))
    panels = sizes if picture.by == "sessions" else [None]
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(3.2 * max(2, len(panels)), 3.6), squeeze=False, layout="constrained",
                                       sharey=True)
    for axes, size in zip(all_axes[0], panels):
        of_panel = [point for point in points
                    if point.get("figure") == figure_name and "value" in point and size in (None, point["size"])]
        for pages, color in COLORS.items():
            of_pages = [point for point in of_panel if point["pages"] == pages]
            places = sorted({point[picture.by] for point in of_pages})
            medians = [statistics.median(point["value"] for point in of_pages if point[picture.by] == place) for place in places]
            axes.plot(places, [median / picture.scale for median in medians], color=color, marker="o", label=f"{pages} pages")
        places = sorted({point[picture.by] for point in of_panel})
        axes.set_xticks(places, [bytes_of(place) if size is None else str(place) for place in places], fontsize=8)
        axes.set(title=f"{bytes_of(size)} of shared_buffers" if size is not None else "",
                 xlabel="sessions" if size is not None else "shared_buffers")
        axes.grid(axis="y", color="#e0e0e0")
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0][0].set_ylim(bottom=0)    # of all panels, now that all is drawn
    all_axes[0][0].set_ylabel(picture.unit)
    all_axes[0][0].legend(frameon=False)
    figure.suptitle(picture.title)
    return figure


def bars(pyplot, picture: Picture, points: list[Point]):
    """A bar for each kind of pages and figure, with the span of the turns, at the largest size."""
    figure, axes = pyplot.subplots(figsize=(6.4, 0.5 + 0.9 * len(picture.figures) + 1), layout="constrained")
    height = 0.8 / len(COLORS)
    for row, name in enumerate(picture.figures):
        largest = max((point["size"] for point in points if point.get("figure") == name and "value" in point), default=0)
        found = values(points, name, size=largest)
        for at, (pages, color) in enumerate(COLORS.items()):
            took = [value / picture.scale for value in found.get(pages, [])]
            if took:
                middle = statistics.median(took)
                axes.barh(row + (at - 1) * height, middle, height * 0.9, color=color, label=f"{pages} pages" if row == 0 else None,
                          xerr=[[middle - min(took)], [max(took) - middle]], ecolor="#404040")
                axes.annotate(f"  {picture.show(middle * picture.scale)}", (max(took), row + (at - 1) * height), va="center", fontsize=8)
    axes.set_yticks(range(len(picture.figures)), picture.figures)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.set(xlabel=picture.unit, title=f"{picture.title}, {bytes_of(max(point['size'] for point in points))} of shared_buffers")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
