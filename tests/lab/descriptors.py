"""The kernel's descriptors of pages (struct page), most of which it can give back for huge pages."""

import re
from pathlib import Path

from harness.cluster import Unsupported
from harness.kernel import meminfo
from harness.smaps import BASE_PAGE
from harness.units import MB

OPTIMIZE = Path("/proc/sys/vm/hugetlb_optimize_vmemmap")


def needs_optimizing() -> None:
    """Unsupported if this kernel can't give them back (before Linux 5.19), or then loses the huge pages that are freed."""
    if loses_huge_pages():
        raise Unsupported("this kernel loses the huge pages that are freed after vm.hugetlb_optimize_vmemmap: bad page state")


def loses_huge_pages() -> bool:
    """Whether an empty pool of 2 MB that grows with vm.hugetlb_optimize_vmemmap and is emptied leaves less free memory."""
    if not OPTIMIZE.exists():
        raise Unsupported("vm.hugetlb_optimize_vmemmap was not tried: this kernel does not have it")
    pages, pool, before = 64, Path("/proc/sys/vm/nr_hugepages"), free_memory()
    for file, value in ((OPTIMIZE, 1), (pool, pages), (OPTIMIZE, 0), (pool, 0)):
        file.write_text(str(value))
    return before - free_memory() > pages * MB


def free_memory() -> int:
    return meminfo()["MemFree"] + in_lists_of_cpus()


def in_lists_of_cpus() -> int:
    """Bytes of free pages in lists of CPUs, which MemFree and MemAvailable leave out (/proc/zoneinfo)."""
    counts = re.findall(r"^ +count: +(\d+)$", Path("/proc/zoneinfo").read_text(), re.MULTILINE)
    return sum(map(int, counts)) * BASE_PAGE


def memory_of_descriptors() -> int:
    """Bytes that they take (/proc/vmstat, since Linux 6.11)."""
    lines = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    if "nr_memmap_boot_pages" not in lines:
        raise Unsupported("what vm.hugetlb_optimize_vmemmap saves was not measured: this kernel does not show nr_memmap_boot_pages")
    return (int(lines["nr_memmap_pages"]) + int(lines["nr_memmap_boot_pages"])) * BASE_PAGE
