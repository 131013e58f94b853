"""The columns that crates/hugepage-assess/columns.txt declares: see there for the form of a line."""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FILE = "crates/hugepage-assess/columns.txt"


class Column(NamedTuple):
    """A column as it is declared; of a metric the name is its own."""

    name: str
    kind: str
    meaning: str

    words: bool = False
    """Whether it is a metric with a series for each word."""

    @property
    def help(self) -> str:
        """The meaning as HELP: NULL is no sample there, or no word that holds."""
        text = self.meaning.replace("NULL", "all 0" if self.words else "no sample")
        return f"{text[:1].upper()}{text[1:]}{'; 1 for the one that holds, else 0' if self.words else ''}."


def lines(root: Path) -> list[str]:
    return [line for line in (root / FILE).read_text().splitlines() if line and not line.startswith("#")]


def sections(root: Path = ROOT) -> dict[str, list[Column]]:
    """The columns of each section."""
    found: dict[str, list[Column]] = {}
    for line in lines(root):
        if line.startswith("["):
            section = line[1:line.index("]")]
            found[section] = []
        elif section != "words":
            name, *rest = line.split(" ", 2)
            column = Column(name, *rest) if len(rest) == 2 else shown(rest[0] if rest else name, found)
            is_metric = section.startswith("metrics ")
            found[section].append(column._replace(name=name, words=column.kind.startswith("word")) if is_metric else column)
    return found


def shown(name: str, found: dict[str, list[Column]]) -> Column:
    """The column of that name as the first section declares it, or with a point in the name the section before it."""
    section, _, column = name.rpartition(".")
    for declared in (found[section],) if section else found.values():
        for one in declared:
            if one.name == column:
                return one
    raise SystemExit(f"{FILE}: no section above declares {name}")


def words(column: str) -> tuple[str, ...]:
    """The words of which a column has one."""
    [listed] = [line.split(": ", 1)[1] for line in lines(ROOT) if line.startswith(f"{column}: ")]
    return tuple(listed.split(", "))
