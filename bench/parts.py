"""The parts of the bench: how each is measured, what a terminal shows of it, and what it writes into its page of docs."""

import argparse
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import backends
import benefit
import headlines
import pictures
import plots
import report
import scrape
import sidecar
import status
import worker
from harness.markers import between_markers
from report import Results

DOCS = Path(__file__).resolve().parent.parent / "docs"

Rows = Iterable[dict[str, Any]]


@dataclass(frozen=True)
class Part:
    """One part. `sentence` goes below its table, `draw` writes its pictures into a directory, `titles` are theirs where the table
    does not show them; `exceeds`: it costs too much."""

    measure: Callable[[Path, argparse.Namespace], Rows]
    table: Callable[[Results], str]
    page: str = "bench.md"
    is_markdown: bool = False
    on_one_cpu: bool = True
    in_full: bool = True
    sentence: Callable[[Results], str] = lambda _results: ""
    draw: Callable[[Path, Results], list[Path]] = lambda _directory, _results: []
    titles: tuple[str, ...] = ()
    exceeds: Callable[[Results], bool] = lambda _results: False

    def fails(self, results: Results) -> bool:
        """Whether this host could not hold a part of it, or it costs too much."""
        return any("skipped" in result for result in results) or self.exceeds(results)

    def block(self, results: Results, by_line: str, pictures: list[Path]) -> str:
        """What stands between its markers."""
        table = self.table(results)
        shown = [f"![{title}]({picture.parent.name}/{picture.name})" for title, picture in zip(self.titles, pictures)]
        return "\n\n".join(filter(None, [by_line, table if self.is_markdown else f"```\n{table}\n```", self.sentence(results), *shown]))


PARTS = {
    # First, while a machine that has just started has free gigabytes in one piece.
    "headlines": Part(lambda directory, chosen: sorted(headlines.rows_of(directory, chosen.quick), key=itemgetter("size")),
                      pictures.measured_part, "benefit.md",
                      is_markdown=True, on_one_cpu=False, draw=pictures.draw),
    "status": Part(lambda directory, chosen: status.rows_of(directory, chosen.quick), report.status_table,
                   sentence=report.status_sentence, draw=plots.draw_status,
                   titles=("hugepage_status beside its floor", "hugepage_status and the size of memory")),
    "backends": Part(lambda directory, chosen: backends.rows_of(directory, chosen.quick, chosen.backends), report.backends_table,
                     sentence=report.backends_sentence, draw=plots.draw_backends, titles=("hugepage_backends beside other ways",)),
    "scrape": Part(lambda directory, chosen: scrape.rows_of(directory, chosen.quick), scrape.table),
    "sidecar": Part(lambda directory, chosen: sidecar.rows_of(directory, chosen.quick), sidecar.table, exceeds=sidecar.exceeds,
                    sentence=lambda results: report.of_goal(sidecar.MOST_RATIO, [result["ratio"] for result in results])),
    "worker": Part(lambda _directory, chosen: worker.rows_of(worker.QUICK_STARTS if chosen.quick else worker.STARTS, chosen.minutes),
                   worker.table, on_one_cpu=False, exceeds=worker.exceeds),
    "benefit": Part(lambda directory, chosen: benefit.rows_of(directory, chosen.quick), benefit.table, "benefit.md",
                    on_one_cpu=False, in_full=False),
}


def write(directory: Path, name: str, results: Results, by_line: str) -> None:
    """Its pictures, and its part of the page, which is a copy of the project's if the directory has none. They get the
    directory's owner."""
    part = PARTS[name]
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / part.page
    if not page.exists():
        shutil.copyfile(DOCS / part.page, page)
    written = part.draw(directory / page.stem, results)
    page.write_text(between_markers(page.read_text(), name, part.block(results, by_line, written)))
    owner = directory.stat()
    for path in (page, *written, *{picture.parent for picture in written}):
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid)
