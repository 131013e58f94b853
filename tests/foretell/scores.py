"""What a face predicted of a restart or a crash, beside where the server landed: arithmetic alone."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

RANK = {"fails": 0, "base": 1, "hugetlb": 2}
"""The outcomes, the worst first; an outlook is one of these or `unknown`."""

NO_NOTE = "(no note)"


class Score(Enum):
    """What a prediction was worth."""

    HIT = "hits"
    UNKNOWN = "unknown"
    FALSE_PROMISE = "wrong promises"
    FALSE_ALARM = "false alarms"


@dataclass(frozen=True)
class Outlook:
    """The outlook that a face shows; `notes` are its reasons, of which `unknown` needs one."""

    lands_in: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """The outlook of one face before an event (`restart`, `crash` or `boot`), and where the server landed."""

    face: str
    event: str
    outlook: Outlook
    landed: str

    @property
    def score(self) -> Score:
        """A landing worse than predicted was a wrong promise, a better one was a false alarm."""
        return score(self.outlook.lands_in, self.landed)


def score(lands_in: str, landed: str) -> Score:
    """`landed` is one of RANK; any other outlook than these is `unknown`."""
    if lands_in not in RANK:
        return Score.UNKNOWN
    if lands_in == landed:
        return Score.HIT
    return Score.FALSE_PROMISE if RANK[landed] < RANK[lands_in] else Score.FALSE_ALARM


def reason(outlook: Outlook) -> str:
    """The notes without their numbers and without the directories of files, so that equal reasons count as one."""
    notes = re.sub(r'"/[^"]*/([^/"]+)"', r'"\1"', "; ".join(outlook.notes))
    return re.sub(r"(?<![\w.])\d+", "N", notes) or NO_NOTE


def warns_of_crash(entries: Iterable[tuple[str, str]]) -> bool:
    """Whether the last of the worker's log entries (level and text) that speaks of a crash is a warning. Others, on the next
    start alone, leave that as it is."""
    warned = False
    for level, text in entries:
        if text.startswith("the restart after a crash ") or "(also after a crash)" in text:
            warned = level == "WARNING"
    return warned


@dataclass
class Tally:
    """All predictions of a run."""

    predictions: list[Prediction]

    def counts(self, face: str, event: str) -> Counter[Score]:
        """How often each score, of one face before one kind of event."""
        return Counter(prediction.score for prediction in self.predictions if (prediction.face, prediction.event) == (face, event))

    def faces(self) -> list[str]:
        """In the order of their first predictions."""
        return list(dict.fromkeys(prediction.face for prediction in self.predictions))

    def reasons(self) -> list[tuple[str, int]]:
        """The reasons of `unknown`, the most frequent first."""
        return Counter(reason(prediction.outlook) for prediction in self.predictions if prediction.score is Score.UNKNOWN).most_common()

    def false(self) -> list[Prediction]:
        """Wrong promises and false alarms."""
        return [prediction for prediction in self.predictions if prediction.score in (Score.FALSE_PROMISE, Score.FALSE_ALARM)]


TOTAL = re.compile(r"^In all: (\d+) answers, (\d+) right, (\d+) unknown, (\d+) wrong\.$", re.MULTILINE)
"""What `total` writes."""


def total(tally: Tally) -> str:
    """One sentence on all answers."""
    scores = Counter(prediction.score for prediction in tally.predictions)
    return (f"In all: {len(tally.predictions)} answers, {scores[Score.HIT]} right, {scores[Score.UNKNOWN]} unknown, "
            f"{len(tally.false())} wrong.")


def counts(text: str) -> list[str]:
    """The numbers of the sentence that `total` has written into a text: answers, right, unknown, wrong. Empty if it has none."""
    found = TOTAL.search(text)
    return list(found.groups()) if found else []


def table(tally: Tally, event: str) -> str:
    """The scores before one kind of event as Markdown, at most 80 columns wide: a row for each face."""
    rows = [[event, "answers", *(kind.value for kind in Score)]]
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
