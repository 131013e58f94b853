"""What the product says of the next boot of this host, read without it: as a rule no boot was seen, and nothing sets a pool."""

import os
import re
from functools import cache
from pathlib import Path

SYSCTL = ("/etc/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d")


@cache
def is_container() -> bool:
    """Whether the files here are those of a container, and not of the host that boots."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    of_root = [mount[mount.index("-") + 1] for mount in mounts if mount[4] == "/"]
    return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" or of_root[-1:] == ["overlay"]


def has_systemd() -> bool:
    """Whether systemd runs, whose files set the pool at the next boot."""
    return Path("/run/systemd/system").is_dir()


@cache
def is_unseen() -> bool:
    """Whether no boot was seen, and nothing sets a pool at boot. In a container nobody can tell."""
    if is_container():
        return False
    files = [path for directory in SYSCTL for path in Path(directory).glob("*.conf")] if has_systemd() else []
    lines = [line for path in files for line in path.read_text(errors="replace").splitlines()]
    sets = any(re.match(r"\s*-?vm[./]nr_hugepages\s*=", line) for line in lines)
    return not re.search(r"\bhugepages=", Path("/proc/cmdline").read_text()) and not sets


def well(huge_pages: str = "try") -> str:
    """The verdict of a server in huge pages that lacks nothing: where nothing sets its pool at boot, that is told."""
    if not is_unseen():
        return "ok"
    return "warning" if huge_pages == "on" and has_systemd() else "notice"
