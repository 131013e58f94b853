"""The kernel's descriptors of pages (struct page), most of which it can give back for huge pages."""

from pathlib import Path

from harness.cluster import Unsupported
from harness.smaps import BASE_PAGE


def needs_optimizing() -> None:
    """Unsupported if this kernel can't give them back (before Linux 5.19)."""
    if not Path("/proc/sys/vm/hugetlb_optimize_vmemmap").exists():
        raise Unsupported("vm.hugetlb_optimize_vmemmap was not tried: this kernel does not have it")


def memory_of_descriptors() -> int:
    """Bytes that they take (/proc/vmstat, since Linux 6.11)."""
    lines = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    if "nr_memmap_boot_pages" not in lines:
        raise Unsupported("what vm.hugetlb_optimize_vmemmap saves was not measured: this kernel does not show nr_memmap_boot_pages")
    return (int(lines["nr_memmap_pages"]) + int(lines["nr_memmap_boot_pages"])) * BASE_PAGE
