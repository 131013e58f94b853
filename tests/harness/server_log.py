"""What the preloaded library says and keeps: its messages in a server's log, its worker, its history."""

import re
from dataclasses import dataclass, field
from typing import Any

from harness.cluster import Cluster
from harness.poll import until
from harness.status import EXTENSION
from harness.trace import traced

PRELOADED = {"shared_preload_libraries": EXTENSION, f"{EXTENSION}.sample_interval": 0}
"""Settings of a server with the library, whose worker does not look by itself."""

WATCHED = {**PRELOADED, f"{EXTENSION}.sample_interval": 1}
"""The same with a worker that looks every second."""

_LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (\w+):  (.*)$")


@dataclass
class Message:
    """One message of ours in a log: level as PostgreSQL writes it, text without the `pg_hugepages: ` in front."""

    pid: int
    level: str
    text: str
    detail: list[str] = field(default_factory=list)
    hint: str | None = None


def messages(log: str) -> list[Message]:
    """Our messages in a log with PostgreSQL's usual line prefix, the oldest first; asserts PostgreSQL's style."""
    found: list[Message] = []
    current: Message | None = None
    for line in log.splitlines():
        start = _LINE.match(line)
        if not start:
            if current and line.startswith("\t"):
                current.detail.append(line.strip())
            continue
        pid, level, text = start.groups()
        if level == "DETAIL" and current:
            current.detail.append(text)
        elif level == "HINT" and current:
            current.hint = text
        else:
            ours = text.startswith(f"{EXTENSION}: ")
            current = Message(int(pid), level, text.removeprefix(f"{EXTENSION}: ")) if ours else None
            if current:
                found.append(current)
    for message in found:
        assert not message.text.endswith(".") and not message.text[0].isupper(), message
        assert all(line.endswith(".") and line[0].isupper() for line in [*message.detail, message.hint or "A."]), message
    return found


def said(cluster: Cluster, pattern: str, level: str | None = None) -> list[Message]:
    """Our messages in the server's log whose text matches, of one level if given."""
    return [message for message in messages(cluster.log())
            if re.search(pattern, message.text) and level in (None, message.level)]


def worker(cluster: Cluster) -> int | None:
    """The pid of the worker, if it runs."""
    found = cluster.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = %s", EXTENSION)
    return found[0]["pid"] if found else None


def await_worker(cluster: Cluster, other_than: int | None = None) -> int:
    """The pid of the worker once it runs and has looked after its file, of a new one if told."""
    pid = until("the worker", lambda: worker(cluster) not in (None, other_than) and worker(cluster))
    idle = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'Extension'"
    until("the worker to be idle", lambda: cluster.sql(idle, pid))
    return pid


def looks(cluster: Cluster, times: int) -> None:
    """Wait until the worker has looked so many times from now on."""
    with traced(worker(cluster), "openat") as trace:
        until(f"{times} looks of the worker", lambda: len(trace.lines('"/proc/meminfo"')) >= times)


def history(cluster: Cluster) -> list[dict[str, Any]]:
    """The rows of hugepage_history."""
    return cluster.sql("SELECT * FROM hugepage_history")


def events(cluster: Cluster) -> list[tuple[str, str, bool]]:
    """Event, landed_in and regression of each row."""
    return [(row["event"], row["landed_in"], row["regression"]) for row in history(cluster)]
