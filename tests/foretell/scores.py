"""What a face foretold of a restart or a crash, beside where the server landed: arithmetic alone."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

RANK = {"fails": 0, "base": 1, "hugetlb": 2}
"""The outcomes, the worst first; what a face says is one of these or `unknown`."""

NO_NOTE = "(no note)"


class Score(Enum):
    """What a word was worth."""

    HIT = "hits"
    UNKNOWN = "unknown"
    FALSE_PROMISE = "false promises"
    FALSE_ALARM = "false alarms"


@dataclass(frozen=True)
class Word:
    """What a face said; `notes` are its reasons, of which `unknown` needs one."""

    said: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Foretold:
    """One word of one face before an event (`restart` or `crash`), and where the server landed."""

    face: str
    event: str
    word: Word
    landed: str

    @property
    def score(self) -> Score:
        """A landing worse than said was promised falsely, a better one was a false alarm."""
        return score(self.word.said, self.landed)


def score(said: str, landed: str) -> Score:
    """`landed` is one of RANK; whatever else than these a face says is `unknown`."""
    if said not in RANK:
        return Score.UNKNOWN
    if said == landed:
        return Score.HIT
    return Score.FALSE_PROMISE if RANK[landed] < RANK[said] else Score.FALSE_ALARM


def reason(word: Word) -> str:
    """The notes without their numbers and without the directories of files, so that equal reasons count as one."""
    notes = re.sub(r'"/[^"]*/([^/"]+)"', r'"\1"', "; ".join(word.notes))
    return re.sub(r"(?<![\w.])\d+", "N", notes) or NO_NOTE


def warns_of_crash(entries: Iterable[tuple[str, str]]) -> bool:
    """Whether the last of the worker's log entries (level and text) that speaks of a crash is a warning. Others, on the next
    start alone, leave that as it is."""
    warned = False
    for level, text in entries:
        if text.startswith("the restart after a crash ") or text.endswith("(also after a crash)"):
            warned = level == "WARNING"
    return warned


@dataclass
class Tally:
    """All words of a run."""

    words: list[Foretold]

    def counts(self, face: str, event: str) -> Counter[Score]:
        """How often each score, of one face before one kind of event."""
        return Counter(word.score for word in self.words if (word.face, word.event) == (face, event))

    def faces(self) -> list[str]:
        """In the order in which they first spoke."""
        return list(dict.fromkeys(word.face for word in self.words))

    def reasons(self) -> list[tuple[str, int]]:
        """The reasons of `unknown`, the most frequent first."""
        return Counter(reason(word.word) for word in self.words if word.score is Score.UNKNOWN).most_common()

    def false(self) -> list[Foretold]:
        """False promises and false alarms."""
        return [word for word in self.words if word.score in (Score.FALSE_PROMISE, Score.FALSE_ALARM)]


def table(tally: Tally, event: str) -> str:
    """The scores before one kind of event as Markdown, at most 80 columns wide: a row for each face."""
    rows = [[event, "words", *(kind.value for kind in Score)]]
    for face in tally.faces():
        counts = tally.counts(face, event)
        if counts:
            rows.append([face, str(counts.total()), *(str(counts[kind]) for kind in Score)])
    widths = [max(map(len, column)) for column in zip(*rows)]

    def line(cells: list[str]) -> str:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths)]
        return f"| {' | '.join([cells[0].ljust(widths[0]), *padded[1:]])} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(map(line, [rows[0], rule, *rows[1:]]))
