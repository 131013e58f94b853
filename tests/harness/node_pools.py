"""The 2 MB pools of NUMA nodes, and the nodes that a mapping's pages are on, as the kernel reports them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
