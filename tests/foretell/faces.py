"""What every face of the project says of the next restart or crash of a server, before it happens."""

import os
from typing import Any

from foretell.scores import Word, warns_of_crash
from harness import sidecar
from harness.cluster import Cluster, rows
from harness.poll import until
from harness.prometheus import samples
from harness.server_log import messages

PATIENCE = float(os.environ.get("PG_HUGEPAGES_PATIENCE", 4))
"""Seconds that the worker has to speak of a change; its interval is 1 s. The guests of ./dev lab are slower."""


def of_view(session: Any, event: str) -> Word:
    """`restart_outlook` or `crash_outlook` of hugepage_status."""
    [row] = rows(session, "SELECT * FROM hugepage_status")
    return Word(row[f"{event}_outlook"] or "unknown", tuple(row["notes"] or ()))


def of_preflight(row: dict[str, Any], notes: tuple[str, ...]) -> Word:
    """A row of hugepage_preflight(). `unknown` has its reason in `detail`, or in the notes of the view."""
    said = "fails" if row["will_start"] is False else row["lands_in"] or "unknown"
    return Word(said, tuple(filter(None, [row["detail"]])) or notes)


def of_metrics(text: str, name: str, event: str, notes: tuple[str, ...]) -> Word:
    """The metric that is 1 of those that name the landing."""
    said = [dict(labels)["lands_in"] for (metric, labels), value in samples(text).items()
            if metric == f"hugepage_{event}_outlook" and value == 1 and ("name", name) in labels]
    return Word(said[0] if said else "unknown", notes)


def of_sidecar(server: Cluster, event: str, *options: str) -> Word:
    """The row of the server in `status --format json`."""
    answer = sidecar.run("status", "--format", "json", *options)
    [row] = [row for row in answer.json()["instances"] if row["pid"] == server.postmaster]
    return Word(row[f"{event}_outlook"] or "unknown", tuple(row["notes"] or ()))


def of_worker(server: Cluster, event: str, view: Word, log_from: int) -> Word | None:
    """Its last word. On a restart: the outlook of its last record. On a crash: whether its warnings speak of one; where it
    is silent it promises what runs, but not where the view itself calls the outcome unknown. None: a server in base pages
    has nothing to lose by a crash, and the worker says nothing of it."""
    def last() -> dict[str, Any]:
        return server.sql("SELECT * FROM hugepage_history")[-1]

    def now() -> dict[str, Any]:
        [row] = server.sql("SELECT landed_in, huge_pages, restart_outlook, crash_outlook FROM hugepage_status")
        return row

    status = now()
    try:
        until("the worker to say the same", lambda: last()["restart_outlook"] == status["restart_outlook"], PATIENCE)
    except TimeoutError:
        pass
    if event == "restart":
        return Word(last()["restart_outlook"], view.notes)
    if status["landed_in"] != "hugetlb":
        return None
    # A loss that becomes a failure is not warned of again.
    loss = "fails" if status["huge_pages"] == "on" or status["crash_outlook"] == "fails" else "base"
    try:
        until("the worker to warn or to end its warning",
              lambda: _warned(server, log_from) == (status["crash_outlook"] == loss), PATIENCE)
    except TimeoutError:
        pass
    if _warned(server, log_from):
        return Word(loss)
    return Word("unknown", view.notes) if view.said == "unknown" else Word("hugetlb")


def _warned(server: Cluster, log_from: int) -> bool:
    return warns_of_crash((message.level, message.text) for message in messages(server.log()[log_from:]))
