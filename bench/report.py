"""Tables for a terminal of 80 columns, from what status.py and backends.py measured."""

import textwrap
from collections.abc import Sequence
from typing import Any

from harness.units import GB, KB, MB

MAX_COLUMNS = 6
STATUS_GOAL, BACKENDS_GOAL = 1.15, 1.1

Results = list[dict[str, Any]]

LABELS = {
    "hugepage_backends": "hugepage_backends",
    "hugepage_page_tables": "hugepage_page_tables",
    "hugepage_status": "hugepage_status",
    "floor": "floor: bare /proc/PID/status",
    "pg_stat_activity": "pg_stat_activity",
}
"""The rows that come first, in this order; the peers follow under their own names."""


def status_table(results: Results) -> str:
    """hugepage_status beside its floor, in the server and as pgbench sees it."""
    lines = ["hugepage_status, in the server: microseconds a call, medians",
             "                         floor: of it              opened      ratio to all and",
             "memory  pages  sessions  ours   all  kernel  empty  once   own  anew  empty   once"]
    for result in results:
        case = f"{size(result['shared_buffers']):>6}  {result['pages']:>5}"
        if "skipped" in result:
            lines.append(f"{case}  skipped: {result['skipped']}")
            continue
        times = result["microseconds"]
        own = times["ours"] - times["floor"] - times["at once"]
        lines.append(f"{case}  {result['sessions']:8}  {times['ours']:4.1f}  {times['floor']:4.1f}  {times['kernel']:6.1f}  "
                     f"{times['empty']:5.1f}  {times['at once']:4.1f}  {own:4.1f}  {times['opened']:4.0f}  {result['ratio']:5.2f}  "
                     f"{result['strict']:5.2f}")
    lines += ["", "the same by pgbench, one client:      -M prepared                -M simple",
              "memory  pages  sessions          SELECT 1  empty   ours    SELECT 1  empty   ours"]
    for result in measured(results):
        both = (result["pgbench"][protocol] for protocol in ("prepared", "simple"))
        cells = ("  ".join((f"{times['select 1']:8.1f}", f"{times['empty']:5.1f}", f"{times['ours']:5.1f}"))
                 for times in both)
        lines.append(f"{size(result['shared_buffers']):>6}  {result['pages']:>5}  {result['sessions']:8}          "
                     + "    ".join(cells))
    return "\n".join(lines)


def backends_table(results: Results) -> str:
    """A row for each query, a column for each kind of pages and number of sessions."""
    columns = measured(results)
    lines = ["hugepage_backends and others, in the server: milliseconds a query, medians"]
    lines += [f"{result['pages']} pages skipped: {result['skipped']}" for result in results if "skipped" in result]
    if not columns:
        return "\n".join(lines)
    kinds = dict.fromkeys(result["pages"] for result in columns)
    # One below the other where a terminal has no room for both.
    blocks = [columns] if len(columns) <= MAX_COLUMNS else [[one for one in columns if one["pages"] == kind] for kind in kinds]
    for number, block in enumerate(blocks):
        lines += [""] * (number > 0) + backends_block(block)
    missing = {extension: why for result in columns for extension, why in result["missing"].items()}
    lines += [line for extension, why in missing.items()
              for line in textwrap.wrap(f"{extension}: not measured, {why}", 80, subsequent_indent="    ")]
    return "\n".join(lines)


def backends_block(columns: Results) -> list[str]:
    """The lines of some columns."""
    lines = [row("pages", [result["pages"] for result in columns]),
             row("sessions", [result["sessions"] for result in columns])]
    for name in queries(columns):
        times = (result["microseconds"].get(name) for result in columns)
        lines.append(row(LABELS.get(name, name), ["-" if time is None else milliseconds(time) for time in times]))
    for view in columns[0]["ratio"]:
        lines.append(row(f"ratio, {view}", [f"{result['ratio'][view]:.2f}" for result in columns]))
    lines.append(row("processes", [result["processes"] for result in columns]))
    lines.append(row("their page tables, MB", [f"{result['page_tables'] / MB:.0f}" for result in columns]))
    return lines


def status_sentence(status: Results) -> str:
    """Whether the goal is met, and how hugepage_status depends on the size of memory."""
    goal = of_goal(STATUS_GOAL, [result["ratio"] for result in measured(status)])
    strict = [result["strict"] for result in measured(status)]
    if strict:
        goal += f" With `once` in place of `empty` they are {min(strict):.2f} to {max(strict):.2f}."
    alone = [result for result in measured(status) if result["pages"] == "base" and result["sessions"] == 1]
    first, last = ends(alone, "shared_buffers")
    if first is last:
        return goal
    times = last["microseconds"]["ours"] / first["microseconds"]["ours"]
    return f"{goal} With {size(last['shared_buffers'])} it takes {times:.2f} times as long as with {size(first['shared_buffers'])}, in base pages."


def backends_sentence(backends: Results) -> str:
    """Whether the goal is met, how hugepage_status depends on the number of sessions, and what each process costs hugepage_backends."""
    goal = of_goal(BACKENDS_GOAL, [ratio for result in measured(backends) for ratio in result["ratio"].values()])
    first, last = ends([result for result in measured(backends) if result["pages"] == "base"], "sessions")
    if first is last:
        return goal
    times = last["microseconds"]["hugepage_status"] / first["microseconds"]["hugepage_status"]
    each = last["microseconds"]["hugepage_backends"] / last["processes"]
    return (f"{goal} With {last['sessions']} sessions hugepage_status takes {times:.2f} times as long as with {first['sessions']}, and "
            f"hugepage_backends {each:.1f} microseconds for each process, in base pages.")


def of_goal(most: float, ratios: list[float]) -> str:
    """Whether all are within a goal, as they are printed."""
    if not ratios:
        return ""
    span = f"ratios of {min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else f"a ratio of {ratios[0]:.2f}"
    over = sum(round(ratio, 2) > most for ratio in ratios)
    return f"The goal is met: {span}." if not over else \
        f"The goal is missed in {over} of {len(ratios)} cases: {span}."


def ends(results: Results, by: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The results with the least and the most of something; the same one twice, or None, if there are not two."""
    if not results:
        return None, None
    return min(results, key=lambda result: result[by]), max(results, key=lambda result: result[by])


def queries(columns: Results) -> list[str]:
    """What was timed in any column: first what has a label."""
    names = dict.fromkeys(name for result in columns for name in result["microseconds"])
    return [*(name for name in LABELS if name in names), *(name for name in names if name not in LABELS)]


def measured(results: Results) -> Results:
    """Those that this host could hold."""
    return [result for result in results if "skipped" not in result]


def row(label: str, values: Sequence[object]) -> str:
    """A line of the table of backends."""
    return f"{label:<30}" + "".join(f"{value:>8}" for value in values)


def milliseconds(microseconds: float) -> str:
    """Three digits of it, and no exponent."""
    value = microseconds / 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def size(count: int) -> str:
    """Bytes for people."""
    unit, name = next((pair for pair in ((GB, "GB"), (MB, "MB")) if count >= pair[0]), (KB, "kB"))
    return f"{count / unit:.3g} {name}"
