"""Waiting without sleeping blindly: ask until it is so, or fail at a deadline that says what was awaited."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(what: str, check: Callable[[], T], seconds: float = 30.0) -> T:
    """Return the first truthy answer of check; TimeoutError naming `what` after so many seconds."""
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
