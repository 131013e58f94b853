"""The tables of record.md: scenarios by kernels. What earlier runs have shown is read from the tables themselves."""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from machines import MACHINES

BEGIN, END = "<!-- lab: written by ./dev lab -->\n", "<!-- end of lab -->\n"
NOT_HAD = "could not be had: "
SIGNS = {"passed": "ok", "failed": "FAILS", "skipped": "-"}


@dataclass
class Column:
    """One kernel: its release, the day on which it was tried, and [outcome, reason] by `machine: scenario`."""

    name: str
    date: str
    release: str = ""
    missing: str = ""
    cells: dict[str, list[str]] = field(default_factory=dict)


def write_table(column: Column, document: Path) -> Column:
    """Add what a run has shown to what the table has of the same kernel, and write the table of all kernels. Returns all that is
    known of that kernel."""
    before, _, rest = document.read_text().partition(BEGIN)
    written, _, after = rest.partition(END)
    known = {one.name: one for one in columns_of(written)}
    earlier = known.get(column.name)
    cells = earlier.cells if earlier and earlier.release == column.release else {}
    known[column.name] = replace(column, cells=cells | column.cells)
    document.write_text(before + BEGIN + table(sorted(known.values(), key=_order)) + END + after)
    return known[column.name]


def row(column: Column) -> list[str]:
    """The kernel's row in tests/tested-on.md: what, system, when, command, checked, right, open, wrong."""
    counts = Counter(outcome for outcome, _reason in column.cells.values())
    system = f"Linux {column.release}" if column.release else f"{NOT_HAD}{column.missing}"
    return [f"scenarios, {column.name}", system, column.date, f"`./dev lab {column.name}`", str(counts.total()),
            *(str(counts[outcome]) for outcome in ("passed", "skipped", "failed"))]


def columns_of(text: str) -> list[Column]:
    """The columns of a table that `table` has made."""
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
    outcomes = {sign: outcome for outcome, sign in SIGNS.items()}
    columns = []
    for _title, what, date, name in re.findall(r"^\| (.*?) \| (.*) \| (.*?) \| `\./dev lab (\S+)` \|$", text, re.MULTILINE):
        missing = what.removeprefix(NOT_HAD) if what.startswith(NOT_HAD) else ""
        columns.append(Column(name, date, "" if missing else what, missing))
    for section in text.split("\n### ")[1:]:
        machine, *lines = section.splitlines()
        for line in lines:
            scenario, *cells = [cell.strip() for cell in line.strip("|").split("|")]
            for column, cell in zip(columns, cells):
                sign, _, number = cell.partition(" ")
                if sign in outcomes and not scenario.startswith("---"):
                    column.cells[f"{machine}: {scenario}"] = [outcomes[sign], reasons.get(number.strip("()"), "")]
    return columns


def _order(column: Column) -> tuple[str, list[int]]:
    """By what follows the number in a kernel's name, such as arm64, and by the number."""
    return _kind(column), _version(column)


def _kind(column: Column) -> str:
    return column.name.partition("-")[2].replace("-", " ")


def _title(column: Column) -> str:
    number = ".".join(column.release.split(".")[:2]) if column.release else column.name.partition("-")[0]
    return f"{number} {_kind(column)}".strip()


def _version(column: Column) -> list[int]:
    numbers = column.release.split("-")[0].split("+")[0].split(".") if column.release else column.name.split(".")
    return [int(number) if number.isdigit() else 99 for number in numbers]


def table(columns: list[Column]) -> str:
    """Markdown; its lines fit 80 columns if the scenarios' names have at most 52 letters."""
    titles = [_title(column) for column in columns]
    lines = ["", "| kernel | release | last tried on | to repeat |", "| --- | --- | --- | --- |"]
    for title, column in zip(titles, columns):
        what = column.release if not column.missing else f"{NOT_HAD}{column.missing}"
        lines.append(f"| {title} | {what} | {column.date} | `./dev lab {column.name}` |")
    reasons: dict[str, int] = {}
    for machine in MACHINES:
        lines += ["", f"### {machine.name}", "", f"{machine.about}.", "",
                  f"| scenario | {' | '.join(titles)} |", "| --- |" + " --- |" * len(titles)]
        for scenario in machine.scenarios():
            cells = [_cell(column.cells.get(f"{machine.name}: {scenario}"), reasons) for column in columns]
            lines.append(f"| {scenario} | {' | '.join(cells)} |")
    if reasons:
        lines += ["", "Not possible there:", ""]
        lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([*lines, "", ""])


def _cell(cell: list[str] | None, reasons: dict[str, int]) -> str:
    if cell is None:
        return ""
    outcome, reason = cell
    if outcome == "skipped" and reason:
        return f"- ({reasons.setdefault(reason, len(reasons) + 1)})"
    return SIGNS[outcome]
