"""The parts of the bench: how each is measured, its table and targets, and what it writes into its page."""

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import backends
import collapse
import headlines
import pictures
import scrape
import sidecar
import status
import worker
from harness.markers import between_markers
from report import Results, Target

ROOT = Path(__file__).resolve().parent.parent
BENCH, RESULTS = "bench/measured.md", "docs/results.md"


@dataclass(frozen=True)
class Part:
    """One part. Those of measured.md make a whole run, the others are run by name.

    `draw` writes its pictures into a directory, if it has any; then its table is Markdown, and part of its page.
    """

    rows_of: Callable[[Path, bool], Iterable[dict]]
    table: Callable[[Results], str] = lambda _results: ""
    targets: Callable[[Results], list[Target]] = lambda _results: []
    page: str = BENCH
    on_one_cpu: bool = True
    draw: Callable[[Path, Results], list[Path]] | None = None

    def fails(self, results: Results) -> bool:
        """Whether this host could not hold a part of it, or a target is missed."""
        return any("skipped" in result for result in results) or not all(target.is_met for target in self.targets(results))

    def show(self, results: Results) -> str:
        """The table and the targets, for a terminal."""
        return "\n\n".join(filter(None, [self.table(results), self.summary(results)]))

    def summary(self, results: Results) -> str:
        """For the page: a line for each target, and the table if that has pictures."""
        targets = "\n".join(f"- {target}." for target in self.targets(results))
        return self.table(results) if self.draw else targets


def headlines_by_size(directory: Path, quick: bool) -> Results:
    """The smallest size first, which is measured last."""
    return sorted(headlines.rows_of(directory, quick), key=itemgetter("size"))


PARTS = {
    "status": Part(status.rows_of, status.table, status.targets),
    "backends": Part(backends.rows_of, backends.table, backends.targets),
    "scrape": Part(scrape.rows_of, scrape.table, scrape.targets),
    "worker": Part(worker.rows_of, targets=worker.targets, on_one_cpu=False),
    "sidecar": Part(sidecar.rows_of, targets=sidecar.targets),
    "collapse": Part(collapse.rows_of, collapse.table, page=RESULTS, on_one_cpu=False, draw=lambda _directory, _results: []),
    "headlines": Part(headlines_by_size, pictures.measured_part, page=RESULTS, on_one_cpu=False, draw=pictures.draw),
}


def write(directory: Path, name: str, results: Results, by_line: str) -> None:
    """Its pictures, and its part of the page, which is a copy of the project's if the directory has none. They get the
    directory's owner."""
    part = PARTS[name]
    page = directory / part.page
    page.parent.mkdir(parents=True, exist_ok=True)
    if not page.exists():
        shutil.copyfile(ROOT / part.page, page)
    written = part.draw(page.with_suffix(""), results) if part.draw else []
    page.write_text(between_markers(page.read_text(), name, f"{by_line}\n\n{part.summary(results)}"))
    owner = directory.stat()
    for path in (page, *written, *{picture.parent for picture in written}):
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)
