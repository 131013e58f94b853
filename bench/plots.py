"""The same numbers as pictures, for docs/bench."""

from pathlib import Path

import peers
from report import LABELS, Results, measured, queries, size

OURS = ("hugepage_backends", "hugepage_page_tables", "hugepage_status")


def draw(directory: Path, status: Results, backends: Results) -> list[Path]:
    """Write an SVG for each of the two that was measured; none if matplotlib can't be had."""
    pyplot = matplotlib()
    if pyplot is None:
        print("bench: no plots without matplotlib (Debian: python3-matplotlib)")
        return []
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, results, plot in (("status", status, plot_status), ("backends", backends, plot_backends)):
        if measured(results):
            figure = plot(pyplot, measured(results))
            path = directory / f"{name}.svg"
            figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
            pyplot.close(figure)
            written.append(path)
    return written


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
    return None


def plot_status(pyplot, results: Results):
    """Two bars for each case: ours, and what it stands on."""
    figure, axes = pyplot.subplots(figsize=(8, 0.7 * len(results) + 1.6), layout="constrained")
    places = range(len(results))
    times = [result["microseconds"] for result in results]
    floor, empty, ours = ([each[name] for each in times] for name in ("floor", "empty", "ours"))
    axes.barh([place - 0.2 for place in places], ours, 0.38, color="#336791", label="hugepage_status")
    axes.barh([place + 0.2 for place in places], floor, 0.38, color="#a0a0a0", label="floor: the bare reads")
    axes.barh([place + 0.2 for place in places], empty, 0.38, left=floor, color="#d0d0d0",
              label="call of an empty set-returning function")
    for place, result in zip(places, results):
        axes.annotate(f" {result['ratio']:.2f}", (result["microseconds"]["ours"], place - 0.2), va="center")
    cases = [f"{size(result['shared_buffers'])}, {result['pages']} pages, {result['sessions']} connected"
             for result in results]
    axes.set_yticks(places, cases)
    axes.invert_yaxis()
    axes.set_xlabel("microseconds a call, and the ratio of ours to the floor")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1), ncols=3, frameon=False)
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
