"""The mappings of any process as the kernel describes them: /proc/PID/smaps, read without any code of the project.

Tests compare the answers of the extension and of the sidecar with this. Reading smaps walks the page tables of the
process, so it is for tests only.
"""

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness.kernel import meminfo
from harness.processes import as_its_user, run
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
    def path(self) -> str:
        """`/anon_hugepage` for `/anon_hugepage (deleted)`."""
        return self.name.removesuffix(" (deleted)")

    @property
    def short_name(self) -> str:
        """`anon_hugepage` for `/anon_hugepage (deleted)`."""
        return self.path.rpartition("/")[2]

    @property
    def landed_in(self) -> str:
        """The kind of pages that the memory is in: `hugetlb`, `thp`, `partial thp` or `base`."""
        if self.page_size > BASE_PAGE:
            return "hugetlb"
        if not self.pmd_mapped:
            return "base"
        # The bounds of the mapping may cut off a huge page at either end.
        return "thp" if self.resident - self.pmd_mapped < 2 * meminfo()["Hugepagesize"] else "partial thp"


def shared_mappings(pid: int) -> list[Mapping]:
    """All shared mappings of a process, in the order of their addresses."""
    found: list[Mapping] = []
    current: Mapping | None = None
    with as_its_user(pid):
        smaps = Path(f"/proc/{pid}/smaps").read_text()
    for line in smaps.splitlines():
        header = _HEADER.match(line)
        if header:
            start, end, permissions, inode, name = header.groups()
            current = Mapping(int(start, 16), int(end, 16), int(inode), name) if permissions[3] == "s" else None
            found += [current] if current else []
        elif current:
            field, _, value = line.partition(":")
            if field == "KernelPageSize":
                current.page_size = int(value.split()[0]) * KB
            elif field in ("Rss", "Shared_Hugetlb", "Private_Hugetlb"):
                current.resident += int(value.split()[0]) * KB
            elif field == "ShmemPmdMapped":
                current.pmd_mapped += int(value.split()[0]) * KB
    return found


def by_page_size(pid: int) -> Counter[int]:
    """Bytes of shared mappings in each page size."""
    sizes: Counter[int] = Counter()
    for mapping in shared_mappings(pid):
        sizes[mapping.page_size] += mapping.length
    return sizes


def server_mappings(pid: int) -> list[Mapping]:
    """The shared memory of a PostgreSQL process; adjacent mappings of one file count as one."""
    found: list[Mapping] = []
    for mapping in shared_mappings(pid):
        if not mapping.name.startswith(_SHARED_MEMORY):
            continue
        # By the name as well: on Linux 5.10 /dev/zero and a System V segment had the same inode number.
        if found and (found[-1].end, found[-1].inode, found[-1].name) == (mapping.start, mapping.inode, mapping.name):
            found[-1].end = mapping.end
            found[-1].page_size = mapping.page_size
            found[-1].resident += mapping.resident
            found[-1].pmd_mapped += mapping.pmd_mapped
        else:
            found.append(mapping)
    return found


def main_mapping(pid: int) -> Mapping:
    """The main segment of a server process: its largest shared mapping (the interlock is one page)."""
    return max(server_mappings(pid), key=lambda mapping: mapping.length)


def pmap_mapping(pid: int, start: int) -> tuple[int, int]:
    """Length and page size in bytes of the mapping at that address according to pmap(1)."""
    with as_its_user(pid):
        _command, header, *lines = run("pmap", "-XX", str(pid)).splitlines()
    columns = header.split()
    for line in lines:
        values = line.split()
        if values and values[0] == f"{start:x}":
            return tuple(int(values[columns.index(name)]) * KB for name in ("Size", "KernelPageSize"))
    raise LookupError(f"pmap shows no mapping at {start:x} in process {pid}")
