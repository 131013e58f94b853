#!/usr/bin/python3
"""Draws hugepages.json without Grafana, for docs/images: the same panels in the same places, by the same queries.

    picture.py PROMETHEUS INSTANCE NAME MINUTES OUTPUT

Needs Debian's python3-matplotlib.
"""

import json
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

DASHBOARD = Path(__file__).resolve().parent / "hugepages.json"
COLORS = {"green": "#3d9970", "blue": "#4f83cc", "orange": "#f0a30a", "red": "#d1495b", "transparent": "#eceff1"}
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))

Series = list[tuple[str, list[float], list[float]]]
"""Legend, times in minutes before now, values; the last value is the present."""


class Data:
    """What Prometheus has for the queries of a panel."""

    def __init__(self, url: str, variables: dict[str, str], minutes: float) -> None:
        self.url, self.variables, self.now, self.minutes = url, variables, time.time(), minutes

    def of(self, target: dict[str, Any]) -> Series:
        """The series of one query of a panel."""
        expression, legend = target["expr"], target.get("legendFormat", "")
        for name, value in self.variables.items():
            expression = expression.replace(f"${name}", value)
        question = urllib.parse.urlencode({"query": expression, "start": self.now - 60 * self.minutes, "end": self.now,
                                           "step": max(0.5, self.minutes / 4)})
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?{question}") as answer:
            found = json.load(answer)["data"]["result"]
        series = []
        for each in found:
            named = legend or each["metric"].get("name", "")
            for label, value in each["metric"].items():
                named = named.replace("{{%s}}" % label, value)
            times = [(float(at) - self.now) / 60 for at, _ in each["values"]]
            series.append((named, times, [float(value) for _, value in each["values"]]))
        return series


def shown(value: float, unit: str | None) -> str:
    """As Grafana shows it."""
    if unit == "bytes":
        for size, name in UNITS:
            if value >= size:
                return f"{value / size:.3g} {name}"
        return f"{value:.0f} B"
    return f"{value:.0f}"


def texts(panel: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The words and colours of values."""
    found: dict[str, dict[str, str]] = {}
    for mapping in panel["fieldConfig"]["defaults"].get("mappings", []):
        found |= mapping["options"]
    return found


def fixed_colors(panel: dict[str, Any]) -> dict[str, str]:
    """Colours by legend."""
    return {override["matcher"]["options"]: each["value"]["fixedColor"] for override in panel["fieldConfig"]["overrides"]
            for each in override["properties"] if each["id"] == "color"}


def draw_stat(axes: Axes, panel: dict[str, Any], series: Series) -> None:
    """Large figures side by side."""
    axes.axis("off")
    words, colors = texts(panel), fixed_colors(panel)
    current = [(name, values[-1]) for name, times, values in series if times[-1] > -0.2]
    for at, (name, value) in enumerate(current):
        word = words.get(f"{value:.0f}")
        says = name if panel["options"]["textMode"] == "name" else word["text"] if word else shown(
            value, panel["fieldConfig"]["defaults"].get("unit"))
        color = word["color"] if word else colors.get(name, "blue")
        axes.add_patch(pyplot.Rectangle((at / len(current), 0), 0.98 / len(current), 1, color=COLORS[color]))
        middle = (at + 0.49) / len(current)
        axes.text(middle, 0.55 if len(current) > 1 else 0.5, says, ha="center", va="center", fontsize=15, color="white")
        if len(current) > 1:
            axes.text(middle, 0.15, name, ha="center", va="center", fontsize=8, color="white")


def draw_table(axes: Axes, panel: dict[str, Any], columns: list[Series]) -> None:
    """A row for each server."""
    axes.axis("off")
    titles = list(panel["transformations"][1]["options"]["renameByName"].values())
    servers = sorted({name for series in columns for name, _, _ in series})
    cells = []
    for server in servers:
        row = [server]
        for title, series in zip(titles, columns):
            value = next((values[-1] for name, _, values in series if name == server), None)
            in_bytes = title in ("shared memory", "page size", "page tables")
            row.append("" if value is None else ("ok", "notice", "warning", "critical")[int(value)] if title == "verdict"
                       else shown(value, "bytes" if in_bytes else None))
        cells.append(row)
    drawn = axes.table(cells, colLabels=["name", *titles], loc="upper left", cellLoc="left", colLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    drawn.auto_set_column_width(range(len(titles) + 1))
    drawn.scale(1, 1.6)
    for (_row, _column), cell in drawn.get_celld().items():
        cell.set_linewidth(0.3)


def draw_lines(axes: Axes, panel: dict[str, Any], series: Series) -> None:
    """Curves over time."""
    unit = panel["fieldConfig"]["defaults"].get("unit")
    for name, times, values in series:
        axes.plot(times, values, label=name, linewidth=1.2, drawstyle="steps-post")
    axes.yaxis.set_major_formatter(lambda value, _position: shown(value, unit))
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=6, ncol=2, loc="upper left", framealpha=0.7)
    axes.set_xlabel("minutes", fontsize=7)
    axes.tick_params(labelsize=7)


def draw_states(axes: Axes, panel: dict[str, Any], series: Series) -> None:
    """A bar for each series in the colours of its values."""
    words = texts(panel)
    for row, (_name, times, values) in enumerate(reversed(series)):
        for at, (start, value) in enumerate(zip(times, values)):
            end = times[at + 1] if at + 1 < len(times) else 0
            axes.barh(row, end - start, left=start, height=0.75, color=COLORS[words[f"{value:.0f}"]["color"]])
    axes.set_yticks(range(len(series)), [name for name, _, _ in reversed(series)])
    axes.set_xlabel("minutes", fontsize=7)
    axes.tick_params(labelsize=7)


def draw_bars(axes: Axes, panel: dict[str, Any], series: Series) -> None:
    """The present as bars."""
    words = texts(panel)
    for row, (_name, _times, values) in enumerate(reversed(series)):
        word = words[f"{values[-1]:.0f}"]
        axes.barh(row, values[-1] + 0.05, height=0.7, color=COLORS[word["color"]])
        axes.text(values[-1] + 0.1, row, word["text"], va="center", fontsize=7)
    axes.set_yticks(range(len(series)), [name for name, _, _ in reversed(series)])
    axes.set_xlim(0, 3.4)
    axes.set_xticks([])
    axes.tick_params(labelsize=7)


DRAW: dict[str, Callable[[Axes, dict[str, Any], Any], None]] = {
    "stat": draw_stat, "timeseries": draw_lines, "state-timeline": draw_states, "bargauge": draw_bars, "table": draw_table,
}


def main() -> None:
    """Places every panel as the dashboard does."""
    url, instance, name, minutes, output = sys.argv[1:]
    data = Data(url, {"instance": instance, "name": name}, float(minutes))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = pyplot.figure(figsize=(13, bottom * 0.36))
    for panel in panels:
        place = panel["gridPos"]
        left, top = place["x"] / 24, 1 - place["y"] / bottom
        if panel["type"] == "row":
            figure.text(left + 0.01, top - 0.7 / bottom, panel["title"], fontsize=12, fontweight="bold", va="center")
            continue
        wide = panel["type"] in ("state-timeline", "bargauge", "timeseries")
        inset = 0.11 if wide else 0.01
        axes = figure.add_axes((left + inset, top - (place["h"] - (1.1 if wide else 0.4)) / bottom,
                                place["w"] / 24 - inset - 0.01, (place["h"] - (2.2 if wide else 1.5)) / bottom))
        axes.set_title(panel["title"], fontsize=9, loc="left")
        found = [data.of(target) for target in panel["targets"]]
        DRAW[panel["type"]](axes, panel, found if panel["type"] == "table" else [each for series in found for each in series])
        for side in axes.spines.values():
            side.set_linewidth(0.4)
    figure.savefig(output)


if __name__ == "__main__":
    main()
