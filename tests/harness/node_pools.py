"""The 2 MB pools of NUMA nodes, and the nodes that a mapping's pages are on, as the kernel reports them."""

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.smaps import BASE_PAGE, Mapping
from harness.units import MB

NODES = Path("/sys/devices/system/node")


def node_file(node: int, name: str = "nr_hugepages", page_size: int = 2 * MB) -> Path:
    """A file of a node's pool."""
    return NODES / f"node{node}" / "hugepages" / f"hugepages-{page_size // 1024}kB" / name


@contextmanager
def pages_on(nodes: dict[int, int]) -> Iterator[None]:
    """Set the pools of nodes, by their number; as before at the end of the block."""
    before = {node: node_file(node).read_text() for node in nodes}
    try:
        for node, pages in nodes.items():
            node_file(node).write_text(str(pages))
            assert int(node_file(node).read_text()) == pages, f"node {node} has no room for {pages} pages"
        yield
    finally:
        for node, pages in before.items():
            node_file(node).write_text(pages)


def nodes_of(pid: int) -> dict[int, int]:
    """Huge pages by node that a process has touched (/proc/PID/numa_maps)."""
    found: dict[int, int] = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        if " huge " in line:
            for node, pages in re.findall(r" N(\d+)=(\d+)", line):
                found[int(node)] = found.get(int(node), 0) + int(pages)
    return found


def nodes_of_pages(pids: list[int], mapping: Mapping) -> dict[int, int]:
    """The pages of a mapping that any of these processes has touched, by node, each page once: from their frames
    (/proc/PID/pagemap, which root may read) and the frames of the nodes (/proc/zoneinfo)."""
    zones = []
    for zone in re.split(r"^(?=Node )", Path("/proc/zoneinfo").read_text(), flags=re.M):
        # A zone without memory has no first frame.
        if bounds := re.match(r"Node (\d+), zone.*spanned\s+(\d+).*start_pfn:\s+(\d+)", zone, re.S):
            node, spanned, start = map(int, bounds.groups())
            zones.append((node, start, spanned))
    frames: set[int] = set()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
            for address in range(mapping.start, mapping.start + mapping.length, mapping.page_size):
                pagemap.seek(address // BASE_PAGE * 8)
                [entry] = struct.unpack("Q", pagemap.read(8))
                if entry >> 63:
                    frames.add(entry & ((1 << 55) - 1))
    found: dict[int, int] = {}
    for frame in frames:
        [node] = {node for node, start, spanned in zones if start <= frame < start + spanned}
        found[node] = found.get(node, 0) + 1
    return found
