"""Random walks over real servers: what every face predicts of each restart and crash, beside where the kernel shows that it
landed. Run by `./dev foretell`. Ends with status 1 and the shortest failing walk if one answer was wrong."""

import argparse
import os
import platform
import shlex
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from foretell.scores import Prediction, Tally, counts, table, total
from foretell.walk import LENGTH, Walk
from foretell.world import World
from harness.cluster import Install
from harness.markers import with_row
from harness.reserved_host import ReservedHost
from harness.signals import unwind_on_signals

BATCH = 100
"""Walks for which Hypothesis is asked at a time, each time with the next seed; it ends when there are steps enough."""


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev foretell", description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=150, metavar="N", help="about so many steps (default: 150)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="the same seed takes the same steps (default: 1)")
    parser.add_argument("--minutes", type=float, metavar="M", help="end after M minutes, whatever the steps")
    parser.add_argument("--no-shrinking", action="store_true", help="print the first failing walk as it is")
    parser.add_argument("--docs", type=Path, metavar="FILE", nargs="?", const=ROOT / "tests" / "tested-on.md",
                        help="write a row into the table of the file (tests/tested-on.md)")
    return parser.parse_args(arguments)


class Enough(BaseException):
    """So many steps were taken, or the minutes are over. Hypothesis itself then complains of a walk that was cut short."""


def walks(chosen: argparse.Namespace, world: World) -> str | None:
    """Take the steps. Returns the steps of the shortest walk that fails, and why, None if none does. The words of walks that
    Hypothesis takes to shrink a failing one do not count."""
    deadline = time.monotonic() + chosen.minutes * 60 if chosen.minutes else None
    counted: list[Prediction] = []
    steps, is_over = 0, False
    failing: list[tuple[list[str], Exception]] = []

    class Counted(Walk):
        """A walk whose words count unless an earlier one has failed."""

        def __init__(self) -> None:
            nonlocal is_over
            is_over = not failing and bool(Walk.steps >= chosen.steps or (deadline and time.monotonic() > deadline))
            if is_over:
                raise Enough
            world.predictions = []
            super().__init__()

        def teardown(self) -> None:
            nonlocal steps
            try:
                super().teardown()
            finally:
                if not failing:
                    counted.extend(world.predictions)
                    steps = Walk.steps
                if self.failure:
                    failing.append((self.journal, self.failure))
                    Walk.shrinking = True
                    print(f"failed after {len(self.journal)} steps: {str(self.failure).splitlines()[0]}", flush=True)

    Walk.world, Walk.steps, Walk.shrinking = world, 0, False
    try:
        for batch in range(chosen.steps):
            run_state_machine_as_test(seed(chosen.seed + batch * 1_000_003)(Counted), settings=settings(
                max_examples=BATCH, stateful_step_count=LENGTH, deadline=None, database=None, print_blob=False,
                phases=(Phase.generate,) if chosen.no_shrinking else (Phase.generate, Phase.shrink),
                verbosity=Verbosity.quiet, report_multiple_bugs=False, suppress_health_check=HealthCheck.all()))
    except (Enough, Exception) as error:
        if not failing and not is_over:
            raise
        if failing and not any(error is failure for _, failure in failing):
            print(f"Hypothesis: {type(error).__name__}: {error}")
    finally:
        world.release_held()
        world.predictions, Walk.steps = counted, steps
    if not failing:
        return None
    journal, failure = min(failing, key=lambda walk: len(walk[0]))
    return "\n".join([*journal, "finish(world)", f"{type(failure).__name__}: {failure}"])


def report(command: str, system: str, world: World, seconds: float) -> str:
    """The scores of each face, and of all together, for a terminal."""
    tally = Tally(world.predictions)
    lines = [f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {system}:",
             f"{Walk.steps} steps, {world.events} restarts and crashes, {seconds / 60:.0f} minutes.", "",
             table(tally, "restart"), "", table(tally, "crash"), "", table(tally, "boot"), "", total(tally), ""]
    if tally.reasons():
        lines += ["Reasons of `unknown`, numbers left out:", ""]
        lines += [f"- {count} times: {why}" for why, count in tally.reasons()]
    return "\n".join(lines)


def system_of(install: Install) -> str:
    """This machine's kernel and the server."""
    return f"Linux {platform.release()}, {install.ask('version').partition(' (')[0]}"


def write_row(page: Path, what: str, system: str, command: str, numbers: list[str]) -> None:
    """Write a run into the table of runs; the file keeps its owner."""
    page.parent.mkdir(parents=True, exist_ok=True)
    before = page.read_text() if page.exists() else "# Tested on\n"
    page.write_text(with_row(before, [what, system, f"{datetime.now(UTC):%Y-%m-%d}", f"`{command}`", *numbers]))
    if os.geteuid() == 0:
        os.chown(page, page.parent.stat().st_uid, page.parent.stat().st_gid)


def main() -> int:
    chosen = options(sys.argv[1:])
    if os.geteuid() != 0:
        print("Huge pages of the host are changed: run this as root or with sudo.", file=sys.stderr)
        return 2
    unwind_on_signals()
    began = time.monotonic()
    with ReservedHost() as host, tempfile.TemporaryDirectory(prefix="pg_hugepages-state-") as state:
        world = World(host, Path(state))
        failure = walks(chosen, world)
    command = shlex.join(["./dev", "foretell", "--steps", str(chosen.steps), "--seed", str(chosen.seed)])
    system = system_of(Install.find())
    text = report(command, system, world, time.monotonic() - began)
    print(text)
    if chosen.docs and not failure:
        write_row(chosen.docs, "walk", system, command, counts(text))
    if failure:
        print(f"\nThe shortest walk that failed, for tests/scenarios/test_walks.py:\n{failure}")
    return 1 if failure or Tally(world.predictions).false() else 0


if __name__ == "__main__":
    sys.exit(main())
