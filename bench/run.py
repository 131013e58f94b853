"""What our views cost, beside the least that it could cost: one command, everything in one run, side by side.

Run by `./dev bench`. Builds throwaway servers, borrows huge pages of the host and gives them back. Prints tables, and
writes them with plots to docs/bench.md and docs/bench/ when everything was measured.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import backends
import benefit
import build
import machine
import measure
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
    parser.add_argument("--only", choices=("status", "backends", "scrape", "worker", "sidecar", "benefit"), help="one part; writes nothing to docs")
    parser.add_argument("--backends", type=lambda text: [int(word) for word in text.split(",")], default=[10, 100, 500],
                        metavar="N,..", help="numbers of sessions for hugepage_backends (default: 10,100,500)")
    parser.add_argument("--minutes", type=float, metavar="N",
                        help=f"how long to watch the worker (default: {worker.MINUTES:g}; with --quick {worker.QUICK_MINUTES:g})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file, too")
    parser.add_argument("--docs", type=Path, metavar="DIR",
                        help="where bench.md and the plots go (default: docs, if all is measured)")
    parser.add_argument("--parsers", action="store_true", help="the core's parsers alone, by Criterion")
    chosen = parser.parse_args(arguments)
    if chosen.only and chosen.docs:
        parser.error("--docs needs all parts, and --only measures one")
    if chosen.minutes is None:
        chosen.minutes = worker.QUICK_MINUTES if chosen.quick else worker.MINUTES
    if chosen.docs is None and not (chosen.quick or chosen.only):
        chosen.docs = ROOT / "docs"
    return chosen


def bench_parsers() -> int:
    """Criterion's own report on crates/hugepage-core/benches."""
    flags = subprocess.run([ROOT / "scripts" / "rust-flags"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    command = ["cargo", "bench", *flags, "--package", "hugepage-core", "--bench", "parsers"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def write_docs(directory: Path, description: str, command: str, found: dict[str, report.Results]) -> None:
    """bench.md and the plots, owned by whoever owns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    written = plots.draw(directory / "bench", found["status"], found["backends"])
    template = Template((ROOT / "bench" / "bench.md.in").read_text())
    page = directory / "bench.md"
    page.write_text(template.substitute(
        command=command, machine=description, status=report.status_table(found["status"]),
        backends=report.backends_table(found["backends"]),
        scrape=scrape.table(found["scrape"]),
        sidecar=sidecar.table(found["sidecar"]),
        worker=worker.table(found["worker"]),
        backends_buffers=report.size(found["backends"][0]["shared_buffers"])))
    owner = directory.stat()
    for path in (page, directory / "bench", *written):
        if path.exists() and os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)


def main() -> int:
    """Exit status 0 when all was measured, 1 when this host could not hold a part of it or something costs too much."""
    chosen = options(sys.argv[1:])
    if chosen.parsers:
        return bench_parsers()
    unwind_on_signals()
    install = Install.find()
    found: dict[str, report.Results] = {"status": [], "backends": [], "scrape": [], "worker": [], "sidecar": [], "benefit": []}
    description = machine.describe(install)
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-bench-") as work:
        directory = Path(work)
        build.build(install, directory)
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
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": description, **found}, indent=1) + "\n")
    if chosen.docs:
        write_docs(chosen.docs, description, shlex.join(["./dev", "bench", *sys.argv[1:]]), found)
    skipped = any("skipped" in result for results in found.values() for result in results)
    return int(skipped or worker.exceeds(found["worker"]) or sidecar.exceeds(found["sidecar"]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
