"""End on signals by an exception, so that context managers restore the host, and block signals while they do."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def unwind_on_signals(leave: Callable[[int], object] = sys.exit) -> None:
    """Let SIGTERM and SIGHUP raise an exception, as SIGINT does by default.

    `leave` raises it; its argument is the exit status.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _frame: leave(128 + caught))


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Block SIGINT, SIGTERM and SIGHUP until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
