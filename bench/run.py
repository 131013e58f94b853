"""What our views cost, beside the least that it could cost: one command, everything in one run, side by side.

Run by `./dev bench`. Builds throwaway servers, borrows huge pages of the host and gives them back. Prints tables, and
writes them with plots to docs/bench.md and docs/bench/ when everything was measured.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import against
import backends
import benefit
import build
import headlines
import machine
import measure
import pictures
import plots
import report
import scrape
import sidecar
import status
import worker
from harness.cluster import Install
from harness.signals import unwind_on_signals


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no 8 GB; writes to docs only with --docs")
    parser.add_argument("--only", choices=("status", "backends", "scrape", "worker", "sidecar", "benefit", "headlines"), help="one part; writes nothing to docs")
    parser.add_argument("--backends", type=lambda text: [int(word) for word in text.split(",")], default=None,
                        metavar="N,..", help="numbers of sessions for hugepage_backends (default: 10,100,500,5000; with --quick 10,100,500)")
    parser.add_argument("--minutes", type=float, metavar="N",
                        help=f"how long to watch the worker (default: {worker.MINUTES:g}; with --quick {worker.QUICK_MINUTES:g})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file, too")
    parser.add_argument("--docs", type=Path, metavar="DIR",
                        help="where bench.md and the plots go (default: docs, if all is measured)")
    parser.add_argument("--against", metavar="REV", help="a revision of git: builds it, too, and measures both in turns; exit status 1 if anything takes "
                        f"more than {against.MOST_RATIO:g} times as long as there")
    parser.add_argument("--other", type=Path, metavar="PG_CONFIG", help=argparse.SUPPRESS)    # of --against, from ./dev
    parser.add_argument("--parsers", action="store_true", help="the core's parsers alone, by Criterion")
    chosen = parser.parse_args(arguments)
    if chosen.only not in (None, "headlines") and chosen.docs:
        parser.error("--docs needs all parts, and --only measures one")
    if bool(chosen.against) != bool(chosen.other):
        parser.error("./dev bench builds the revision of --against")
    if chosen.against and (chosen.only or chosen.docs):
        parser.error("--against measures queries of its own")
    if chosen.backends is None:
        chosen.backends = backends.QUICK_SESSIONS if chosen.quick else backends.SESSIONS
    if chosen.minutes is None:
        chosen.minutes = worker.QUICK_MINUTES if chosen.quick else worker.MINUTES
    if chosen.docs is None and not (chosen.quick or chosen.only or chosen.against):
        chosen.docs = ROOT / "docs"
    return chosen


def bench_parsers() -> int:
    """Criterion's own report on crates/hugepage-core/benches."""
    flags = subprocess.run([ROOT / "scripts" / "rust-flags"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    command = ["cargo", "bench", *flags, "--package", "hugepage-core", "--bench", "parsers"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def write_docs(directory: Path, description: str, typed: str, found: dict[str, report.Results]) -> None:
    """bench.md and the plots, owned by whoever owns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    written = plots.draw(directory / "bench", found["status"], found["backends"])
    template = Template((ROOT / "bench" / "bench.md.in").read_text())
    page = directory / "bench.md"
    page.write_text(template.substitute(
        command=typed, machine=description, status=report.status_table(found["status"]),
        backends=report.backends_table(found["backends"]),
        curve_sentence=report.curve_sentence(found["status"], found["backends"]),
        scrape=scrape.table(found["scrape"]),
        sidecar=sidecar.table(found["sidecar"]),
        worker=worker.table(found["worker"]),
        backends_buffers=report.size(found["backends"][0]["shared_buffers"])))
    give(directory, page, directory / "bench", *written)


def write_pictures(directory: Path, description: str, points: report.Results) -> None:
    """The pictures of huge pages, and the part of benefit.md that shows them."""
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "benefit.md"
    if not page.exists():
        shutil.copyfile(ROOT / "docs" / "benefit.md", page)
    written = pictures.draw(directory / "benefit", points)
    pictures.fill(page, pictures.measured_part(points, description, command(), machine.load(), "benefit"))
    give(directory, page, directory / "benefit", *written)


def give(directory: Path, *paths: Path) -> None:
    """Make them the directory's owner's."""
    owner = directory.stat()
    for path in paths:
        if path.exists() and os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)


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
    machine.load()
    if chosen.parsers:
        return bench_parsers()
    unwind_on_signals()
    install = Install.find()
    found: dict[str, report.Results] = {"status": [], "backends": [], "scrape": [], "worker": [], "sidecar": [], "benefit": [], "headlines": []}
    description = machine.describe(install)
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        directory = Path(work)
        build.build(install, directory)
        if chosen.against:
            return bench_against(directory, chosen, description)
        with measure.one_cpu():
            if chosen.only in (None, "status"):
                found["status"] = list(status.rows_of(directory, chosen.quick))
            if chosen.only in (None, "backends"):
                found["backends"] = list(backends.rows_of(directory, chosen.quick, chosen.backends))
            if chosen.only in (None, "scrape"):
                found["scrape"] = list(scrape.rows_of(directory, chosen.quick))
            if chosen.only in (None, "sidecar"):
                found["sidecar"] = list(sidecar.rows_of(directory, chosen.quick))
        if chosen.only == "benefit":
            found["benefit"] = list(benefit.rows_of(directory, chosen.quick))
        if chosen.only in (None, "headlines"):
            found["headlines"] = list(headlines.rows_of(directory, chosen.quick))
        if chosen.only in (None, "worker"):
            found["worker"] = list(worker.rows_of(worker.QUICK_STARTS if chosen.quick else worker.STARTS, chosen.minutes))

    print(f"\n{description}\n")
    if found["status"]:
        print(report.status_table(found["status"]) + "\n")
    if found["backends"]:
        print(report.backends_table(found["backends"]) + "\n")
    if found["scrape"]:
        print(scrape.table(found["scrape"]) + "\n")
    if found["worker"]:
        print(worker.table(found["worker"]) + "\n")
    if found["sidecar"]:
        print(sidecar.table(found["sidecar"]))
    if found["benefit"]:
        print(benefit.table(found["benefit"]))
    if found["headlines"]:
        print(pictures.measured_part(found["headlines"], description, command(), machine.load(), "benefit"))
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": description, **found}, indent=1) + "\n")
    if chosen.docs:
        if chosen.only != "headlines":
            write_docs(chosen.docs, description, command(), found)
        write_pictures(chosen.docs, description, found["headlines"])
    skipped = any("skipped" in result for results in found.values() for result in results)
    return int(skipped or worker.exceeds(found["worker"]) or sidecar.exceeds(found["sidecar"]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
