"""The independent witness: what the kernel says about a server's memory, read without any code of the extension.

Answers are checked against this, never against ourselves. It walks smaps, so it is for tests only.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from harness.pool import Pool, PoolNumbers
from harness.processes import run
from harness.units import KB

BASE_PAGE = os.sysconf("SC_PAGE_SIZE")

_HEADER = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)\s*(.*)$")
_SHARED_MEMORY = ("/anon_hugepage", "/dev/zero", "/SYSV")


@dataclass
class Mapping:
    """One mapping of a process; sizes in bytes, name as the kernel writes it."""

    start: int
    end: int
    inode: int
    name: str
    page_size: int = 0
    resident: int = 0
    pmd_mapped: int = 0

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def short_name(self) -> str:
        """`anon_hugepage` for `/anon_hugepage (deleted)`."""
        return self.name.removesuffix(" (deleted)").rpartition("/")[2]

    @property
    def landed_in(self) -> str:
        """Where the memory lies: `hugetlb`, `thp`, `partial thp` or `base`."""
        if self.page_size > BASE_PAGE:
            return "hugetlb"
        if not self.pmd_mapped:
            return "base"
        # A huge page at either end may be cut off by the mapping's bounds.
        return "thp" if self.resident - self.pmd_mapped < 2 * meminfo()["Hugepagesize"] else "partial thp"


def shared_mappings(pid: int) -> list[Mapping]:
    """The shared-memory mappings of a server process, adjacent ones of one file merged."""
    found: list[Mapping] = []
    current: Mapping | None = None
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        header = _HEADER.match(line)
        if header:
            start, end, perms, inode, name = header.groups()
            current = None
            if perms[3] == "s" and name.startswith(_SHARED_MEMORY):
                current = Mapping(int(start, 16), int(end, 16), int(inode), name)
                if found and (found[-1].end, found[-1].inode) == (current.start, current.inode):
                    found[-1].end = current.end
                    current = found[-1]
                else:
                    found.append(current)
        elif current:
            field, _, value = line.partition(":")
            if field == "KernelPageSize":
                current.page_size = int(value.split()[0]) * KB
            elif field in ("Rss", "Shared_Hugetlb", "Private_Hugetlb"):
                current.resident += int(value.split()[0]) * KB
            elif field == "ShmemPmdMapped":
                current.pmd_mapped += int(value.split()[0]) * KB
    return found


def main_mapping(pid: int) -> Mapping:
    """The main segment of a server process: its largest shared mapping (the interlock is one page)."""
    return max(shared_mappings(pid), key=lambda mapping: mapping.length)


def pmap_mapping(pid: int, start: int) -> tuple[int, int]:
    """Length and page size in bytes of the mapping at that address according to pmap(1)."""
    _command, header, *lines = run("pmap", "-XX", str(pid)).splitlines()
    columns = header.split()
    for line in lines:
        values = line.split()
        if values and values[0] == f"{start:x}":
            return tuple(int(values[columns.index(name)]) * KB for name in ("Size", "KernelPageSize"))
    raise LookupError(f"pmap shows no mapping at {start:x} in process {pid}")


def meminfo() -> dict[str, int]:
    """/proc/meminfo: sizes in bytes, HugePages_* as counts."""
    fields = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, value, *unit = line.replace(":", " ").split()
        fields[name] = int(value) * (KB if unit else 1)
    return fields


def pool_numbers(page_size: int) -> PoolNumbers:
    """The pool as /proc/meminfo tells it for the default size; other sizes stand in sysfs alone."""
    numbers = Pool(page_size).numbers()
    memory = meminfo()
    if memory["Hugepagesize"] != page_size:
        return numbers
    counts = (memory[f"HugePages_{name}"] for name in ("Total", "Free", "Rsvd", "Surp"))
    return PoolNumbers(*counts, overcommit=numbers.overcommit)


def has_procmap_query() -> bool:
    """Whether this kernel answers PROCMAP_QUERY (Linux 6.11 on)."""
    major, minor = re.match(r"(\d+)\.(\d+)", os.uname().release).groups()
    return (int(major), int(minor)) >= (6, 11)


def open_files(pid: int) -> list[str]:
    """What the open descriptors of a process point at."""
    return sorted(str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir())
