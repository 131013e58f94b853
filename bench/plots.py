"""The same numbers as pictures, for docs/bench."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
from harness.units import GB
from report import LABELS, Results, measured, queries, size

OURS = ("hugepage_backends", "hugepage_page_tables", "hugepage_status")


def draw_status(directory: Path, status: Results) -> list[Path]:
    """Of hugepage_status: beside its floor, and against the size of memory."""
    return draw(directory, measured(status), {"status": plot_status, "memory": plot_memory})


def draw_backends(directory: Path, backends: Results) -> list[Path]:
    """Of hugepage_backends beside other ways, against the number of sessions."""
    return draw(directory, measured(backends), {"backends": plot_backends})


def draw(directory: Path, results: Results, plots: dict[str, Callable[[Any, Results], Any]]) -> list[Path]:
    """An SVG by each name; none if nothing was measured, or matplotlib can't be had."""
    pyplot = matplotlib()
    if pyplot is None or not results:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    return [save(pyplot, plot(pyplot, results), directory / f"{name}.svg") for name, plot in plots.items()]


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
    print("bench: no plots without matplotlib (Debian: python3-matplotlib)")
    return None


def plot_status(pyplot, results: Results):
    """Two bars for each case: ours, and what it stands on."""
    figure, axes = pyplot.subplots(figsize=(8, 0.7 * len(results) + 1.6), layout="constrained")
    places = range(len(results))
    times = [result["microseconds"] for result in results]
    kernel, floor, empty, ours = ([each[name] for each in times] for name in ("kernel", "floor", "empty", "ours"))
    calls = [all_calls - of_kernel for all_calls, of_kernel in zip(floor, kernel)]
    axes.barh([place - 0.2 for place in places], ours, 0.38, color="#336791", label="hugepage_status")
    axes.barh([place + 0.2 for place in places], kernel, 0.38, color="#808080", label="floor: pages and pool")
    axes.barh([place + 0.2 for place in places], calls, 0.38, left=kernel, color="#b0b0b0", label="other system calls")
    axes.barh([place + 0.2 for place in places], empty, 0.38, left=floor, color="#d0d0d0",
              label="call of an empty set-returning function")
    for place, result in zip(places, results):
        axes.annotate(f" {result['ratio']:.2f}", (result["microseconds"]["ours"], place - 0.2), va="center")
    cases = [f"{size(result['shared_buffers'])}, {result['pages']} pages, {result['sessions']} connected"
             for result in results]
    axes.set_yticks(places, cases)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a call, and the ratio of ours to the floor")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=4, frameon=False)
    return figure


def plot_backends(pyplot, results: Results):
    """A panel for each kind of pages, a line for each query, both axes logarithmic."""
    kinds = list(dict.fromkeys(result["pages"] for result in results))
    figure, panels = pyplot.subplots(1, len(kinds), figsize=(4.5 * len(kinds), 5), sharey=True, squeeze=False,
                                     layout="constrained")
    for axes, kind in zip(panels[0], kinds):
        of_kind = [result for result in results if result["pages"] == kind]
        sessions = [result["sessions"] for result in of_kind]
        for name in queries(of_kind):
            style = {"linewidth": 2.5, "marker": "o"} if name in OURS else {"linestyle": "--", "marker": "."}
            axes.plot(sessions, [result["microseconds"].get(name, float("nan")) / 1000 for result in of_kind],
                      label=LABELS.get(name, name), **style)
        axes.set(xscale="log", yscale="log", title=f"{kind} pages", xlabel="sessions")
        axes.set_xticks(sessions, [str(count) for count in sessions])
        axes.minorticks_off()
        axes.grid(axis="y", color="#e0e0e0")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("milliseconds a query")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, frameon=False)
    return figure


def plot_memory(pyplot, results: Results):
    """The time of hugepage_status against the size of shared memory: a line for each kind of pages and number of sessions."""
    figure, axes = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    for kind, style in (("base", "-"), ("huge", "--")):
        of_kind = [result for result in results if result["pages"] == kind]
        for sessions in dict.fromkeys(result["sessions"] for result in of_kind):
            line = [result for result in of_kind if result["sessions"] == sessions]
            axes.plot([result["shared_buffers"] / GB for result in line], [result["microseconds"]["ours"] for result in line],
                      linestyle=style, marker="o", label=f"{kind} pages, {sessions} connected")
    most = max(result["microseconds"]["ours"] for result in results)
    axes.set(xlabel="shared_buffers, GB", ylabel="microseconds of hugepage_status", ylim=(0, 1.15 * most))
    axes.grid(axis="y", color="#e0e0e0")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure
