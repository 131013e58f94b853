"""A statement that another thread waits for: it may never end."""

import threading
from typing import Any

import psycopg2

from harness.cluster import Cluster, rows
from harness.poll import SLOWER


class NoEnd(Exception):
    """A statement has not ended in time."""


class BackgroundStatement:
    """A statement in a session of its own; `before` are statements before it."""

    def __init__(self, server: Cluster, statement: str, *before: str) -> None:
        self.session = server.connect()
        self.pid = self.session.info.backend_pid
        for other in before:
            rows(self.session, other)
        self.error: psycopg2.Error | None = None
        self.rows: list[dict[str, Any]] = []
        self._statement = statement
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.rows = rows(self.session, self._statement)
        except psycopg2.Error as error:
            self.error = error

    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def end(self, seconds: float) -> psycopg2.Error | None:
        """Wait for its end; the error that it ended with."""
        self._thread.join(seconds * SLOWER)
        if self.running():
            raise NoEnd(f"no end within {seconds} s: {self._statement}")
        return self.error
