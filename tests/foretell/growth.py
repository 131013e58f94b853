"""Whether a figure grows over hours, or only varies: arithmetic alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

WARM_UP = 0.25
"""The share of the samples that is left out: caches fill at first."""

MIN_SAMPLES = 8
"""Fewer say nothing."""


@dataclass(frozen=True)
class Growth:
    """A figure after the warm-up and at the end, and by how much it varies."""

    began: float
    ended: float
    noise: float

    @property
    def grown(self) -> float:
        """By how much the end exceeds the beginning; 0 if that is within the noise."""
        difference = self.ended - self.began
        return difference if difference > self.noise else 0.0


def growth(samples: Sequence[float], grain: float) -> Growth | None:
    """The medians of the first and of the last third of what follows the warm-up. The noise is three times the median
    distance between one sample and the next, at least `grain`: the unit in which the figure moves at all. None: too few."""
    rest = list(samples[int(len(samples) * WARM_UP):])
    if len(rest) < MIN_SAMPLES:
        return None
    third = len(rest) // 3
    steps = [abs(later - earlier) for earlier, later in zip(rest, rest[1:])]
    return Growth(median(rest[:third]), median(rest[-third:]), max(grain, 3 * median(steps)))
