"""Whether this process may change the host, found by trying, and the end of a test that begins to where it may not.

With Docker's defaults root may not: /proc/sys and /sys are read-only, and mounts, traces and other users' processes take more
capabilities.
"""

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from harness.pool import pools
from harness.processes import CommandFailed, run

REASON = ("what changes huge pages of the host, mounts, traces, or reads other users' processes was not tried: "
          "run ./dev as root or with sudo, in a container with docker run --privileged")

OF_THE_HOST = ("/proc/sys/", "/sys/")
PROGRAMS = {"mount", "nsenter", "strace", "sysctl", "umount", "unshare"}


class Refused(Exception):
    """A test needs to change the host, which this process may not."""


@cache
def refusal() -> str | None:
    """What the kernel says to a change of the host; None where it allows it. Tried once, and nothing is changed."""
    settings = [Path("/proc/sys/vm", name) for name in ("nr_hugepages", "overcommit_memory")]
    try:
        for setting in filter(Path.exists, [*settings, *(pool.directory / "nr_hugepages" for pool in pools())]):
            os.close(os.open(setting, os.O_WRONLY))
        run("unshare", "--mount", "true")
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    except CommandFailed as error:
        return str(error).splitlines()[-1]
    return None


def need_the_host() -> None:
    """Raise Refused where the host may not be changed."""
    if refusal():
        raise Refused(REASON)


def end_tests_that_change_the_host() -> None:
    """From now on whatever begins to change the host raises Refused, where it may not be changed."""
    if refusal():
        sys.addaudithook(_before)


def _before(event: str, arguments: tuple[Any, ...]) -> None:
    """Sees what Python is about to do (PEP 578)."""
    if event == "subprocess.Popen":
        words = arguments[1] if isinstance(arguments[1], (list, tuple)) else [arguments[1]]
        changes = any(os.path.basename(os.fsdecode(word)) in PROGRAMS for word in words)
    elif event == "open":
        changes = _is_of_the_host(arguments[0]) and arguments[2] & os.O_ACCMODE != os.O_RDONLY
    else:
        changes = event == "os.mkdir" and _is_of_the_host(arguments[0])
    if changes:
        need_the_host()


def _is_of_the_host(path: Any) -> bool:
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(OF_THE_HOST)
