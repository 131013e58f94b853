"""Wait for a condition by polling, with a deadline."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SLOWER = int(os.environ.get("PG_HUGEPAGES_SLOWER", 1))
"""By how much time limits are longer, in guests of ./dev lab whose CPU is emulated slowly."""


def until(what: str, check: Callable[[], T], seconds: float = 30.0) -> T:
    """Return the first true value of `check`; TimeoutError that names `what` after `seconds`, on slow machines SLOWER times that."""
    seconds *= SLOWER
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {seconds:g} s for: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
