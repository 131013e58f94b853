"""Sessions and connections that a server bears for hours, in processes of their own, and what they could not do."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from typing import Any

import psycopg2

VIEWS = ("hugepage_status", "hugepage_segments", "hugepage_segments(true)", "hugepage_pools", "hugepage_backends",
         "hugepage_page_tables", "hugepage_host", "hugepage_findings", "hugepage_recommendations", "hugepage_preflight()",
         "hugepage_history")
POLL = 3.0
"""Seconds in which each standing session reads one view."""

MAX_ERRORS = 20
"""So many are kept as text; all are counted."""


class Load:
    """A context manager: `sessions` standing sessions, and `rate` connections a second by `connectors` processes."""

    def __init__(self, dsn: str, sessions: int, rate: float, connectors: int = 2) -> None:
        self._ended = multiprocessing.Event()
        self._counters = multiprocessing.Array("q", [0, 0, 0])
        self._texts: Any = multiprocessing.SimpleQueue()
        work: list[tuple[Callable[..., None], tuple]] = [(_connect, (dsn, rate / connectors))] * connectors
        work.append((_poll, (dsn, sessions)))
        self._processes = [multiprocessing.Process(target=_guarded, daemon=True, args=(
            target, arguments, self._ended, self._counters, self._texts)) for target, arguments in work]
        self.errors: list[str] = []

    def __enter__(self) -> "Load":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        for process in self._processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                process.join()
        self.read_errors()

    def read_errors(self) -> None:
        """Empty the pipe, which holds only so much."""
        while not self._texts.empty():
            self.errors.append(self._texts.get())

    connections = property(lambda self: self._counters[0], doc="Connections made, each with a query.")
    polls = property(lambda self: self._counters[1], doc="Views read by the standing sessions.")
    failures = property(lambda self: self._counters[2], doc="Errors of both.")

    def dead(self) -> int:
        """Processes of the load that have ended by themselves."""
        return sum(process.exitcode not in (None, 0) for process in self._processes)


def _guarded(target: Callable[..., None], arguments: tuple, ended: Event, counters: Any, texts: Any) -> None:
    os.setsid()

    def count(index: int) -> None:
        with counters.get_lock():
            counters[index] += 1

    def failed(error: Exception) -> None:
        count(2)
        if counters[2] <= MAX_ERRORS:
            texts.put(f"{type(error).__name__}: {error}"[:500])

    target(*arguments, ended, count, failed)


def _connect(dsn: str, rate: float, ended: Event, count: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
    """Connect, look, and leave; at the rate if the machine is fast enough."""
    due = time.monotonic()
    while not ended.is_set():
        due = max(due + 1 / rate, time.monotonic() - 1)
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            connection = psycopg2.connect(dsn)
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT verdict, restart_outlook FROM hugepage_status")
                    assert cursor.fetchall()
            finally:
                connection.close()
            count(0)
        except (psycopg2.Error, AssertionError) as error:
            failed(error)


def _poll(dsn: str, sessions: int, ended: Event, count: Callable[[int], None], failed: Callable[[Exception], None]) -> None:
    """The standing sessions: each reads the views in turn, one in POLL seconds."""
    connections = []
    for _ in range(sessions):
        connection = psycopg2.connect(dsn, application_name="standing")
        connection.autocommit = True
        connections.append(connection)
    turn = 0
    while not ended.is_set():
        began = time.monotonic()
        for number, connection in enumerate(connections):
            if ended.is_set():
                break
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"SELECT * FROM {VIEWS[(turn + number) % len(VIEWS)]}")
                    cursor.fetchall()
                count(1)
            except psycopg2.Error as error:
                failed(error)
            time.sleep(max(0.0, began + POLL * (number + 1) / sessions - time.monotonic()))
        turn += 1
    for connection in connections:
        connection.close()
