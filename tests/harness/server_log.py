"""The messages of the extension in a server's log."""

import re
from dataclasses import dataclass, field

from harness.cluster import Cluster
from harness.status import EXTENSION

_LINE = re.compile(r"^\S+ \S+ \S+ \[(\d+)\] (\w+):  (.*)$")


@dataclass
class Message:
    """One message of the extension: level as PostgreSQL writes it, text without the prefix `pg_hugepages: `."""

    pid: int
    level: str
    text: str
    detail: list[str] = field(default_factory=list)
    hint: str | None = None


def messages(log: str) -> list[Message]:
    """The extension's messages in a log with the default log_line_prefix, the oldest first; asserts PostgreSQL's style."""
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
            is_of_extension = text.startswith(f"{EXTENSION}: ")
            current = Message(int(pid), level, text.removeprefix(f"{EXTENSION}: ")) if is_of_extension else None
            if current:
                found.append(current)
    for message in found:
        assert not message.text.endswith(".") and not message.text[0].isupper(), message
        assert all(line.endswith(".") and line[0].isupper() for line in [*message.detail, message.hint or "A."]), message
    return found


def logged(cluster: Cluster, pattern: str, level: str | None = None) -> list[Message]:
    """The extension's messages whose text matches `pattern`, of one level if given."""
    return [message for message in messages(cluster.log())
            if re.search(pattern, message.text) and level in (None, message.level)]
