"""What every face of the project says of the next restart or crash of a server, before it happens."""

import os
from typing import Any

from foretell.scores import Outlook, warns_of_crash
from harness import sidecar
from harness.cluster import Cluster, rows
from harness.poll import until
from harness.prometheus import Samples
from harness.server_log import messages

WORKER_TIMEOUT = float(os.environ.get("PG_HUGEPAGES_PATIENCE", 4))
"""Seconds that the worker has to speak of a change; its interval is 1 s. The guests of ./dev lab are slower."""


def of_view(session: Any, event: str) -> Outlook:
    """`restart_outlook`, `crash_outlook` or `boot_outlook` of hugepage_status."""
    [row] = rows(session, "SELECT * FROM hugepage_status")
    return Outlook(row[f"{event}_outlook"] or "unknown", tuple(row["notes"] or ()))


def of_preflight(row: dict[str, Any], notes: tuple[str, ...]) -> Outlook:
    """A row of hugepage_preflight(). `unknown` has its reason in `detail`, or in the notes of the view."""
    lands_in = "fails" if row["will_start"] is False else row["lands_in"] or "unknown"
    return Outlook(lands_in, tuple(filter(None, [row["detail"]])) or notes)


def of_metrics(found: Samples, name: str, event: str, notes: tuple[str, ...]) -> Outlook:
    """The metric that is 1 of those that name the landing."""
    lands_in = [dict(labels)[metric] for (metric, labels), value in found.items()
                if metric == f"hugepage_{event}_outlook" and value == 1 and ("name", name) in labels]
    return Outlook(lands_in[0] if lands_in else "unknown", notes)


def of_sidecar(server: Cluster, event: str, *options: str) -> Outlook:
    """The row of the server in `status --format json`."""
    answer = sidecar.run("status", "--format", "json", *options)
    [row] = [row for row in answer.json()["instances"] if row["pid"] == server.postmaster]
    return Outlook(row[f"{event}_outlook"] or "unknown", tuple(row["notes"] or ()))


def of_worker(server: Cluster, event: str, view: Outlook, log_from: int) -> Outlook | None:
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
        until("the worker to say the same", lambda: last()["restart_outlook"] == status["restart_outlook"], WORKER_TIMEOUT)
    except TimeoutError:
        pass
    if event == "restart":
        return Outlook(last()["restart_outlook"], view.notes)
    if status["landed_in"] != "hugetlb":
        return None
    # A loss that becomes a failure is not warned of again.
    loss = "fails" if status["huge_pages"] == "on" or status["crash_outlook"] == "fails" else "base"
    try:
        until("the worker to warn or to end its warning",
              lambda: _warned(server, log_from) == (status["crash_outlook"] == loss), WORKER_TIMEOUT)
    except TimeoutError:
        pass
    if _warned(server, log_from):
        return Outlook(loss)
    return Outlook("unknown", view.notes) if view.lands_in == "unknown" else Outlook("hugetlb")


def _warned(server: Cluster, log_from: int) -> bool:
    return warns_of_crash((message.level, message.text) for message in messages(server.log()[log_from:]))
