"""What the views cost, beside other queries: one command, everything in one run, as ratios.

Run by `./dev bench`. Builds throwaway servers, borrows huge pages of the host and gives them back. Prints tables and whether
each target is met; writes them to bench/measured.md and docs/results.md, each part as soon as it was measured.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import against
import build
import machine
import measure
from harness.cluster import Install
from harness.signals import unwind_on_signals
from parts import BENCH, PARTS, ROOT, write
from report import Results

WHOLE_RUN = [name for name, part in PARTS.items() if part.page == BENCH]


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, less memory")
    parser.add_argument("--only", choices=list(PARTS), help=f"one part (default: {', '.join(WHOLE_RUN)})")
    parser.add_argument("--docs", type=Path, metavar="DIR", nargs="?", const=ROOT,
                        help="write the tables into bench/measured.md and docs/results.md there (default: here)")
    parser.add_argument("--against", metavar="REV", help="a revision of git: builds it, too, and measures both in turns; exit status 1 if anything takes "
                        f"more than {against.MOST_RATIO:g} times as long as there")
    parser.add_argument("--other", type=Path, metavar="PG_CONFIG", help=argparse.SUPPRESS)    # of --against, from ./dev
    parser.add_argument("--parsers", action="store_true", help="the core's parsers alone, by Criterion")
    chosen = parser.parse_args(arguments)
    if bool(chosen.against) != bool(chosen.other):
        parser.error("./dev bench builds the revision of --against")
    if chosen.against and (chosen.only or chosen.docs):
        parser.error("--against measures queries of its own")
    return chosen


def bench_parsers() -> int:
    """Criterion's own report on crates/hugepage-kernel/benches."""
    flags = subprocess.run([ROOT / "scripts" / "rust-flags"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    command = ["cargo", "bench", *flags, "--package", "hugepage-kernel", "--bench", "parsers"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def bench_against(directory: Path, chosen: argparse.Namespace) -> int:
    """This build beside another one; exit status 1 if it is slower, or could not be measured."""
    with measure.one_cpu():
        results = list(against.rows_of(directory, chosen.quick, Install(chosen.other)))
    print(f"\n{against.table(results, chosen.against)}")
    return int(against.exceeds(results) or any("skipped" in result for result in results))


def measured(name: str, directory: Path, quick: bool) -> tuple[Results, str]:
    """The results of a part, and how busy others kept the machine."""
    if PARTS[name].on_one_cpu:
        with measure.one_cpu() as cpu:
            others = machine.Usage(without=[cpu])
            results = list(PARTS[name].rows_of(directory, quick))
            return results, f"Its other CPUs were {others.share():.0%} busy meanwhile."
    before = machine.Usage()
    time.sleep(3)
    busy = f"Its CPUs were {before.share():.0%} busy in the 3 s before."
    return list(PARTS[name].rows_of(directory, quick)), busy


def main() -> int:
    """Exit status 0 when all was measured, 1 when this host could not hold a part of it or a target is missed."""
    chosen = options(sys.argv[1:])
    if chosen.parsers:
        return bench_parsers()
    unwind_on_signals()
    install = Install.find()
    fails = False
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        directory = Path(work)
        build.build(install, directory)
        if chosen.against:
            return bench_against(directory, chosen)
        for name in [chosen.only] if chosen.only else WHOLE_RUN:
            results, busy = measured(name, directory, chosen.quick)
            by_line = (f"Measured by `{shlex.join(['./dev', 'bench', *sys.argv[1:]])}`, {datetime.now(UTC):%Y-%m-%d}: "
                       f"{machine.describe(install)}. {busy}")
            print(f"\n{by_line}\n\n{PARTS[name].show(results)}\n", flush=True)
            if chosen.docs:
                write(chosen.docs, name, results, by_line)
            fails |= PARTS[name].fails(results)
    return int(fails)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
