"""What our views cost, beside the least that it could cost: one command, everything in one run, side by side.

Run by `./dev bench`. Builds throwaway servers, borrows huge pages of the host and gives them back. Prints tables, and
writes them with plots to docs/bench.md and docs/benefit.md, each part as soon as it was measured.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import against
import backends
import build
import machine
import measure
import worker
from harness.cluster import Install
from harness.signals import unwind_on_signals
from parts import DOCS, PARTS, write
from report import Results


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, less memory; writes to docs only with --docs")
    parser.add_argument("--only", choices=list(PARTS), help="one part")
    parser.add_argument("--backends", type=lambda text: [int(word) for word in text.split(",")], default=None,
                        metavar="N,..", help="numbers of sessions for hugepage_backends (default: 10,100,500,5000; with --quick 10,100,500)")
    parser.add_argument("--minutes", type=float, metavar="N",
                        help=f"how long to watch the worker (default: {worker.MINUTES:g}; with --quick {worker.QUICK_MINUTES:g})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file, too")
    parser.add_argument("--docs", type=Path, metavar="DIR", nargs="?", const=DOCS,
                        help="where bench.md, benefit.md and the plots are written (default: docs, if all is measured in full)")
    parser.add_argument("--against", metavar="REV", help="a revision of git: builds it, too, and measures both in turns; exit status 1 if anything takes "
                        f"more than {against.MOST_RATIO:g} times as long as there")
    parser.add_argument("--other", type=Path, metavar="PG_CONFIG", help=argparse.SUPPRESS)    # of --against, from ./dev
    parser.add_argument("--parsers", action="store_true", help="the core's parsers alone, by Criterion")
    chosen = parser.parse_args(arguments)
    if bool(chosen.against) != bool(chosen.other):
        parser.error("./dev bench builds the revision of --against")
    if chosen.against and (chosen.only or chosen.docs):
        parser.error("--against measures queries of its own")
    if chosen.backends is None:
        chosen.backends = backends.QUICK_SESSIONS if chosen.quick else backends.SESSIONS
    if chosen.minutes is None:
        chosen.minutes = worker.QUICK_MINUTES if chosen.quick else worker.MINUTES
    if chosen.docs is None and not (chosen.quick or chosen.only or chosen.against):
        chosen.docs = DOCS
    return chosen


def bench_parsers() -> int:
    """Criterion's own report on crates/hugepage-core/benches."""
    flags = subprocess.run([ROOT / "scripts" / "rust-flags"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    command = ["cargo", "bench", *flags, "--package", "hugepage-core", "--bench", "parsers"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def command() -> str:
    """As it was typed."""
    return shlex.join(["./dev", "bench", *sys.argv[1:]])


def bench_against(directory: Path, chosen: argparse.Namespace, description: str) -> int:
    """This build beside another one; exit status 1 if it is slower, or could not be measured."""
    with measure.one_cpu():
        results = list(against.rows_of(directory, chosen.quick, Install(chosen.other)))
    print(f"\n{description}\n\n{against.table(results, chosen.against)}")
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": description, "against": results}, indent=1) + "\n")
    return int(against.exceeds(results) or any("skipped" in result for result in results))


def main() -> int:
    """Exit status 0 when all was measured, 1 when this host could not hold a part of it or something costs too much."""
    chosen = options(sys.argv[1:])
    if chosen.parsers:
        return bench_parsers()
    unwind_on_signals()
    install = Install.find()
    found: dict[str, Results] = {}
    description = machine.describe(install)
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        directory = Path(work)
        build.build(install, directory)
        if chosen.against:
            return bench_against(directory, chosen, description)
        by_line = f"Measured by `{command()}`, {datetime.now(UTC):%Y-%m-%d}: {description}. {machine.load()}"
        for name in [chosen.only] if chosen.only else [name for name, part in PARTS.items() if part.in_full]:
            part = PARTS[name]
            with measure.one_cpu() if part.on_one_cpu else nullcontext():
                found[name] = list(part.measure(directory, chosen))
            print(f"\n{part.table(found[name])}\n", flush=True)
            if chosen.docs:
                write(chosen.docs, name, found[name], by_line)
    print(by_line)
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": description, **found}, indent=1) + "\n")
    return int(any(PARTS[name].fails(results) for name, results in found.items()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
