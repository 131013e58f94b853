"""What the kernel reports about the host and about descriptors, read without any code of the project.

Tests compare the answers of the extension and of the sidecar with this; smaps.py is the same for mappings.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

from harness.pool import Pool, PoolNumbers
from harness.processes import as_its_user
from harness.units import KB


def meminfo() -> dict[str, int]:
    """/proc/meminfo: sizes in bytes, HugePages_* as counts."""
    fields = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, value, *unit = line.replace(":", " ").split()
        fields[name] = int(value) * (KB if unit else 1)
    return fields


def pool_numbers(page_size: int) -> PoolNumbers:
    """The pool by /proc/meminfo for the default page size; only sysfs has the pools of other sizes."""
    numbers = Pool(page_size).numbers()
    memory = meminfo()
    if memory["Hugepagesize"] != page_size:
        return numbers
    counts = (memory[f"HugePages_{name}"] for name in ("Total", "Free", "Rsvd", "Surp"))
    return PoolNumbers(*counts, overcommit=numbers.overcommit)


def sysv_segments() -> dict[int, int]:
    """Sizes in bytes of all System V segments by shmid (/proc/sysvipc/shm)."""
    return {int(row[1]): int(row[3]) for row in _sysv_rows()}


def _sysv_rows() -> list[list[str]]:
    return [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]


def memory_of_ended_servers() -> list[str]:
    """What PostgreSQL servers that were killed have left: files of dynamic shared memory that no process maps, and System V
    segments of the size of a header (PGShmemHeader) that none has attached."""
    maps = []
    for file in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError), as_its_user(int(file.parent.name)):
            maps.append(file.read_text())
    mapped = set(re.findall(r"/dev/shm/PostgreSQL\.\d+", "\n".join(maps)))
    files = {str(file) for file in Path("/dev/shm").glob("PostgreSQL.*") if os.access(file, os.R_OK)}
    return sorted(files - mapped) + sorted(row[1] for row in _sysv_rows() if int(row[3]) < 100 and row[6] == "0")


def has_procmap_query() -> bool:
    """Whether this kernel answers PROCMAP_QUERY (Linux 6.11 on)."""
    major, minor = re.match(r"(\d+)\.(\d+)", os.uname().release).groups()
    return (int(major), int(minor)) >= (6, 11)


def open_files(pid: int) -> list[str]:
    """The targets of a process's open descriptors, sorted."""
    with as_its_user(pid):
        return sorted(str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())


def kernel_files(pid: int) -> list[str]:
    """Those of them that are in /proc and /sys."""
    return [name for name in open_files(pid) if name.startswith(("/proc", "/sys"))]
