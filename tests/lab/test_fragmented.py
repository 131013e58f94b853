"""apply where memory is fragmented or short, in a guest with an unused page of 1 GB."""

import re
from pathlib import Path
from statistics import median

from harness import sidecar
from harness.cluster import Unsupported
from harness.fragmented import fragmented
from harness.kernel import meminfo, pool_numbers
from harness.sidecar import OK, WARNING
from harness.smaps import BASE_PAGE
from harness.units import GB, MB

PAGES = 400


def test_a_larger_page_is_split_where_memory_is_fragmented(pool):
    """Enough memory is available, in pieces that are too small: the pool does not grow, until a page of 1 GB is split."""
    pool(GB, 1)
    pool(2 * MB, 0)
    with fragmented(left=200 * MB):
        assert meminfo()["MemAvailable"] > 1.2 * PAGES * 2 * MB
        failed = sidecar.run("apply", "--pages", PAGES, "--page-size", "2MB", "--drop-caches")
        assert failed.status == WARNING, failed
        given = int(re.search(rf"the kernel gave (\d+) of {PAGES} pages", failed.stderr).group(1))
        assert given < PAGES / 2 and (pool_numbers(2 * MB).nr, pool_numbers(GB).nr) == (0, 1)
        if not Path("/sys/kernel/mm/hugepages/hugepages-1048576kB/demote").exists():
            raise Unsupported("a page of 1 GB was not split: Linux 5.16 and newer can")
        answer = sidecar.run("apply", "--pages", PAGES, "--page-size", "2MB", "--demote")
        assert (answer.status, answer.stderr) == (OK, ""), answer
        assert "1 unused pages of 1 GB were split" in answer.stdout
        assert (pool_numbers(2 * MB).nr, pool_numbers(GB).nr) == (PAGES, 0)


def available() -> int:
    """MemAvailable, and the free pages in lists of CPUs, which it leaves out."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    in_lists = re.findall(r"^ +count: +(\d+)$", Path("/proc/zoneinfo").read_text(), re.MULTILINE)
    return meminfo()["MemAvailable"] + sum(map(int, in_lists)) * BASE_PAGE


def test_memory_gains_what_was_foretold(pool):
    """With vm.hugetlb_optimize_vmemmap the same pool leaves more memory available, by what `apply` says."""
    if not Path("/proc/sys/vm/hugetlb_optimize_vmemmap").exists():
        raise Unsupported("vm.hugetlb_optimize_vmemmap was not tried: this kernel does not have it")
    pool(2 * MB, 0)

    def left_beside(*options: str) -> tuple[int, str]:
        """The memory that is available beside the pool, and what was said."""
        answer = sidecar.run("apply", "--pages", PAGES, "--page-size", "2MB", *options)
        assert (answer.status, answer.stderr) == (OK, ""), answer
        left = available()
        assert sidecar.run("apply", "--pages", 0, "--page-size", "2MB").status == OK
        return left, answer.stdout

    left_beside()
    gains = []
    for _ in range(5):
        (without, _), (optimized, said) = left_beside(), left_beside("--optimize-vmemmap")
        gains.append(optimized - without)
    foretold = float(re.search(r"up to ([\d.]+) MB less memory", said).group(1)) * MB
    assert abs(median(gains) - foretold) <= 0.05 * foretold, (gains, foretold)
