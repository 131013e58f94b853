"""The next boot: a file of sysctl.d, and the settings that a boot applies, applied to the pools that are there."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foretell.scores import Outlook
from harness import sidecar
from harness.units import MB

FILE = Path("/etc/sysctl.d/90-foretell.conf")
"""Sorts behind those of distributions, as the file that hints write."""

SYSCTL = Path("/usr/lib/systemd/systemd-sysctl")
"""What a boot runs: all directories in their order, here for the pool alone."""


@contextmanager
def sysctl_file() -> Iterator[Path]:
    """The file, which is gone at the end."""
    try:
        yield FILE
    finally:
        FILE.unlink(missing_ok=True)


def reserve(count: int | None) -> None:
    """The next boot reserves so many pages; None: the file sets nothing."""
    FILE.unlink(missing_ok=True)
    if count is not None:
        with suppress(OSError):
            FILE.write_text(f"vm.nr_hugepages = {count}\n")


def apply() -> int:
    """Set the pool of the default size as a boot does; the pages that it keeps then."""
    subprocess.run([SYSCTL, "--prefix=/vm/nr_hugepages"], check=True)
    return int(Path("/proc/sys/vm/nr_hugepages").read_text())


def of_sidecar(need: int, all_needs: int, alarm: str) -> Outlook:
    """What the pool of the next boot is to the server, which needs so many pages of it: certain if it is too small for the server
    alone, or enough for all."""
    answer = sidecar.run("status", "--format", "json").json()
    [pool] = [pool for pool in answer["next_boot"] if pool["page_size"] == 2 * MB]
    if pool["state"] in ("unknown", "unseen"):
        return Outlook("unknown", (pool["reason"] or "no boot has been seen yet",))
    count = pool["nr_hugepages"] or 0
    if count < need:
        return Outlook(alarm)
    return Outlook("hugetlb") if count >= all_needs else Outlook("unknown", ("the order of the starts decides",))
