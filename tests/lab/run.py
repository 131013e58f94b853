"""./dev lab: boot each kernel as each machine, and run the scenarios in the guests.

One guest of a kernel runs at a time; with --short all kernels run at the same time, because a guest without KVM takes little more
than one CPU. --docs writes the tables of record.md and tests/tested-on.md after each guest, so that a run that is
interrupted was not in vain; scenarios that a run leaves out keep what an earlier run with --docs has shown on the same kernel.
"""

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from booted import ENVIRONMENT, GUESTS, booted, kernel_of, log_of
from command_lines import pools_of_every_command_line
from debian_boot import run_scenario
from harness.guest import GuestFailed, Kernel
from harness.kernel import meminfo
from harness.markers import with_row
from harness.signals import unwind_on_signals
from harness.units import GB, MB
from machines import COMMAND_LINES, DEBIAN_BOOT, MACHINES, SHORT, Boot, Machine
from reporter import MARK
from table import Column, row, write_table
from walks import run_walks

PYTEST = f"{ENVIRONMENT} python3 -m pytest -p reporter -c /mnt/tests/pytest.ini --rootdir /mnt/tests -v --color no --tb short"
SECONDS_A_SCENARIO = 180
RECORD, PAGE = Path("tests/lab/record.md"), Path("tests/tested-on.md")


@dataclass(frozen=True)
class Outcome:
    """`passed`, `failed` or `skipped`, why, and the seconds it took."""

    outcome: str
    reason: str = ""
    seconds: float = 0


Wanted = dict[Boot, list[tuple[Machine, dict[str, str]]]]


def wanted_scenarios(part: str | None, short: bool) -> Wanted:
    """The scenarios by boot and machine; with `part`, `A or B`, those whose machine or name contains A or B."""
    found: Wanted = {}
    parts = (part or "").replace("_", " ").split(" or ")
    for machine in MACHINES:
        scenarios = {name: node for name, node in machine.scenarios().items()
                     if any(one in f"{machine.name} {name}" for one in parts)
                     and (not short or machine.name in SHORT and node.startswith("lab/"))}
        if scenarios:
            found.setdefault(machine.boot, []).append((machine, scenarios))
    return found


def run_in_guest(kernel: Kernel, boot: Boot, nodes: list[str], lab: Path) -> tuple[dict[str, Outcome], str | None]:
    """The outcomes by node, and what the guest says its kernel is; None if it did not boot.

    A guest that ends too early is booted again for the scenarios that are left.
    """
    outcomes: dict[str, Outcome] = {}
    release, why = None, ""
    log_of(lab, kernel, boot).unlink(missing_ok=True)
    for _ in range(GUESTS):
        left = [node for node in nodes if node not in outcomes]
        if not left:
            break
        reported, booted_release, why = run_in_one_guest(kernel, boot, left, lab)
        outcomes |= reported
        release = release or booted_release
    return {node: outcomes.get(node, Outcome("failed", why)) for node in nodes}, release


def run_in_one_guest(kernel: Kernel, boot: Boot, nodes: list[str], lab: Path) -> tuple[dict[str, Outcome], str | None, str]:
    """The outcomes of the nodes that were reported, the kernel's release, and why the others were not."""
    outcomes: dict[str, Outcome] = {}
    release = None
    began = time.monotonic()
    with open(log_of(lab, kernel, boot), "a") as log:

        def read(line: str) -> None:
            print(line, file=log, flush=True)
            if MARK in line:
                keep(json.loads(line.split(MARK, 1)[1]))

        def keep(report: dict) -> None:
            """The worst of a scenario's parameters."""
            node = report["node"].partition("[")[0]
            before = outcomes.get(node)
            if before is None or before.outcome == "passed":
                outcomes[node] = Outcome(report["outcome"], report["reason"], report["seconds"])

        try:
            with booted(lab, kernel, boot) as guest:
                release = guest.run("uname -r", seconds=60).output
                guest.run(" ".join([PYTEST, *(f"/mnt/tests/{node}" for node in nodes)]),
                          seconds=SECONDS_A_SCENARIO, each_line=read)
            why = "it was not reported: see the log"
        except GuestFailed as error:
            print(error, file=log)
            why = str(error).splitlines()[0].removesuffix("; the end of its output and of its console:")
            print(f"   {boot.name}: {why}, {len(nodes) - len(outcomes)} scenarios were left", flush=True)
    print(f"   {boot.name}: ended after {time.monotonic() - began:.0f} s", flush=True)
    return outcomes, release, why


def run_command_lines(kernel: Kernel, node: str, lab: Path) -> tuple[dict[str, Outcome], str]:
    """The outcome of the table of command lines, and the kernel's release. What differs is in the log."""
    began = time.monotonic()
    release, lines, found = pools_of_every_command_line(kernel.image, kernel.initramfs)
    log_of(lab, kernel, COMMAND_LINES).write_text("\n".join([f"{lines} command lines on {release}", *found]) + "\n")
    reason = f"{len(found)} of {lines} differ: see the log" if found else ""
    return {node: Outcome("failed" if found else "passed", reason, time.monotonic() - began)}, release


def run_on_debian(kernel: Kernel, node: str, lab: Path) -> Outcome:
    """The outcome of a scenario on a Debian of its own. What failed is in the log."""
    name, began = node.partition("::")[2], time.monotonic()
    try:
        run_scenario(name, kernel, lab, log_of(lab, kernel, DEBIAN_BOOT, f"{name}.console"))
        return Outcome("passed", seconds=time.monotonic() - began)
    except (AssertionError, GuestFailed):
        log_of(lab, kernel, DEBIAN_BOOT, f"{name}.log").write_text(traceback.format_exc())
        return Outcome("failed", f"see the log of {name}", time.monotonic() - began)


def run_kernel(name: str, wanted: Wanted, lab: Path, write: Callable[[Column], None]) -> Column:
    """All wanted scenarios on one kernel, in a guest for each boot; the column so far is written after each."""
    kernel = kernel_of(lab, name)
    column = Column(name, date=datetime.now(timezone.utc).date().isoformat())
    if isinstance(kernel, str):
        column.missing = kernel
        print(f"!! {name}: not had: {column.missing}", flush=True)
        write(column)
        return column
    print(f"== {name}: {kernel.release}", flush=True)
    for boot, machines in wanted.items():
        needed = sum(boot.nodes) * MB + GB
        if meminfo()["MemAvailable"] < needed:
            print(f"!! {boot.name}: left out: this host has less than {needed // GB} GB of memory available", flush=True)
            continue
        impossible = {node: Outcome("skipped", machine.impossible[kernel.architecture.name]) for machine, scenarios in machines
                      if kernel.architecture.name in machine.impossible for node in scenarios.values()}
        nodes = [node for _machine, scenarios in machines for node in scenarios.values() if node not in impossible]
        if boot == COMMAND_LINES and nodes:
            outcomes, release = run_command_lines(kernel, nodes[0], lab)
        elif boot == DEBIAN_BOOT:
            outcomes, release = {node: run_on_debian(kernel, node, lab) for node in nodes}, kernel.release
        else:
            outcomes, release = run_in_guest(kernel, boot, nodes, lab)
        outcomes |= impossible
        column.release = release or column.release or kernel.release
        for machine, scenarios in machines:
            for scenario, node in scenarios.items():
                outcome = outcomes[node]
                column.cells[f"{machine.name}: {scenario}"] = [outcome.outcome, outcome.reason]
                print(f"   {outcome.outcome:8} {outcome.seconds:5.1f} s  {machine.name}: {scenario}"
                      + (f"  ({outcome.reason})" if outcome.reason else ""), flush=True)
        write(column)
    return column


def run_side_by_side(kernels: list[str], lab: Path, part: str | None) -> int:
    """Run --short of each kernel in a process of its own; what they printed follows in turn. The exit status is 1 if one failed."""
    with ExitStack() as scope:
        runs = []
        for kernel in kernels:
            command = [sys.executable, __file__, "--lab", lab, "--short", "--kernels", kernel, *(["-k", part] if part else [])]
            run = scope.enter_context(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True))
            scope.callback(run.terminate)    # it powers its guest off
            runs.append(run)
        for run in runs:
            print(run.communicate()[0], flush=True)
    return int(any(run.returncode for run in runs))


def main() -> int:
    unwind_on_signals()
    parser = argparse.ArgumentParser()
    parser.add_argument("--lab", type=Path, required=True)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("-k", dest="part")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--docs", action="store_true", help="write what was seen into the tables of record.md and tests/tested-on.md")
    parser.add_argument("--steps", type=int, help="take the random walks of ./dev foretell instead, of so many steps on each kernel and machine")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.steps:
        return run_walks(asked.lab, asked.kernels.split(), asked.steps, asked.seed, asked.part or "",
                         PAGE if asked.docs else None)
    kernels = asked.kernels.split()
    if asked.short and not asked.docs and len(kernels) > 1:
        return run_side_by_side(kernels, asked.lab, asked.part)
    wanted = wanted_scenarios(asked.part, asked.short)
    if not wanted:
        print(f"no scenario has '{asked.part}' in its name", file=sys.stderr)
        return 1
    began = time.monotonic()

    def write(column: Column) -> None:
        if asked.docs:
            known = write_table(column, RECORD)
            PAGE.write_text(with_row(PAGE.read_text(), row(known)))

    columns = [run_kernel(name, wanted, asked.lab, write) for name in kernels]
    counts = {outcome: sum(cell[0] == outcome for column in columns for cell in column.cells.values())
              for outcome in ("passed", "failed", "skipped")}
    missing = [column.name for column in columns if column.missing]
    print(f"\n{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} not possible on that kernel"
          + (f", kernels not had: {', '.join(missing)}" if missing else "") + f", in {time.monotonic() - began:.0f} s")
    return 1 if counts["failed"] or missing else 0


if __name__ == "__main__":
    sys.exit(main())
