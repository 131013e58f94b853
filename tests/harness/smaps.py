"""The independent witness for a whole host: what root reads by hand of any server's processes, without our code.

kernel.py is the same for one PostgreSQL server; here is what an SGA needs, which is many mappings.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.processes import run, status_bytes
from harness.units import KB

BASE = os.sysconf("SC_PAGE_SIZE")

_HEADER = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ (\S+) (\d+)\s*(.*)$")


def shared(pid: int) -> list[tuple[str, int, int, int]]:
    """The shared mappings of a process: name, inode, size, and the size of their pages (smaps)."""
    found = []
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        header = _HEADER.match(line)
        if header:
            start, end, permissions, _device, inode, name = header.groups()
            keep = permissions[3] == "s"
            mapping = name.removesuffix(" (deleted)"), int(inode), int(end, 16) - int(start, 16)
        elif line.startswith("KernelPageSize:") and keep:
            found.append((*mapping, int(line.split()[1]) * KB))
    return found


def by_page_size(pid: int) -> Counter[int]:
    """Bytes of shared memory in each size of pages."""
    sizes: Counter[int] = Counter()
    for _name, _inode, size, page_size in shared(pid):
        sizes[page_size] += size
    return sizes


def segments() -> dict[int, int]:
    """Sizes of all System V segments by shmid."""
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {int(row[1]): int(row[3]) for row in rows}


def page_tables(pids: Iterable[int]) -> int:
    """The page tables of these processes, in bytes."""
    return sum(status_bytes(pid, "VmPTE") for pid in pids)


def memlock(pid: int) -> int | None:
    """What a process may lock (the soft limit), in bytes; None without a limit."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    soft = re.search(r"^Max locked memory +(\S+) ", limits, re.MULTILINE).group(1)
    return None if soft == "unlimited" else int(soft)


def children(pid: int) -> list[int]:
    """The processes that this one has started and that still run."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


@contextmanager
def hugetlbfs(point: Path, page_size: int) -> Iterator[Path]:
    """A hugetlbfs at this place."""
    point.mkdir()
    run("mount", "-t", "hugetlbfs", "-o", f"pagesize={page_size // KB}K,mode=1777", "none", point)
    try:
        yield point
    finally:
        run("umount", point)
