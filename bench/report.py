"""Targets, and numbers for people."""

from dataclasses import dataclass
from typing import Any

from harness.units import GB, KB, MB

Results = list[dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """What a figure may be: at most `bound`, or at least."""

    figure: str
    found: float
    bound: float
    is_least: bool = False

    @property
    def is_met(self) -> bool:
        """As it is printed."""
        found = float(self._shown)
        return found >= self.bound if self.is_least else found <= self.bound

    @property
    def _shown(self) -> str:
        return f"{self.found:.3g}"

    def __str__(self) -> str:
        return f"{'met' if self.is_met else 'missed'}: {self.figure}: {self._shown}, {'at least' if self.is_least else 'at most'} {self.bound:g}"


def measured(results: Results) -> Results:
    """Those that this host could hold."""
    return [result for result in results if "skipped" not in result]


def milliseconds(microseconds: float) -> str:
    """Three digits of it, and no exponent."""
    value = microseconds / 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def size(count: int) -> str:
    """Bytes for people."""
    unit, name = next((pair for pair in ((GB, "GB"), (MB, "MB")) if count >= pair[0]), (KB, "kB"))
    return f"{count / unit:.3g} {name}"
