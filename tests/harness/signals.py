"""Being told to end: unwind, so that every context manager gives back what it took, and let nothing disturb that."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def unwind_on_signals(leave: Callable[[int], object] = sys.exit) -> None:
    """Let SIGTERM and SIGHUP end the program by an exception, as SIGINT does by itself.

    leave raises it, and is given the exit status.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda caught, _frame: leave(128 + caught))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold such signals back until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
