"""apply --optimize-vmemmap, in guests alone: what it leaves of a host's memory stays in pieces, see test_freed_pool.py."""

import re
from pathlib import Path
from statistics import median

from descriptors import OPTIMIZE, in_lists_of_cpus, loses_huge_pages, memory_of_descriptors, needs_optimizing

from harness import sidecar
from harness.cluster import Unsupported
from harness.kernel import meminfo
from harness.sidecar import OK, UNKNOWN
from harness.units import KB, MB

PAGES = 256


def available() -> int:
    """The memory that is available, that in lists of CPUs too."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    return meminfo()["MemAvailable"] + in_lists_of_cpus()


def test_memory_gains_what_was_foretold(pool):
    """With vm.hugetlb_optimize_vmemmap the same pool leaves more memory available, by what `apply` says."""
    needs_optimizing()
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
        (without, _), (optimized, output) = left_beside(), left_beside("--optimize-vmemmap")
        gains.append(optimized - without)
    predicted = float(re.search(r"up to ([\d.]+) MB less memory", output).group(1)) * MB
    assert abs(median(gains) - predicted) <= 0.05 * predicted, (gains, predicted)


def test_saves_the_memory_of_page_descriptors(pool):
    needs_optimizing()
    pool(2 * MB, 0)
    before = memory_of_descriptors()
    plain = sidecar.run("apply", "--pages", 50, "--page-size", "2MB")
    assert plain.status == OK and memory_of_descriptors() == before
    answer = sidecar.run("apply", "--pages", 50 + PAGES, "--page-size", "2MB", "--optimize-vmemmap")
    assert (answer.status, answer.stderr) == (OK, ""), answer
    assert f"up to {PAGES * 28 * KB // MB} MB less memory" in answer.stdout, answer
    saved = before - memory_of_descriptors()
    assert abs(saved - PAGES * 28 * KB) <= 0.05 * PAGES * 28 * KB, saved
    assert OPTIMIZE.read_text().strip() == "0"
    assert sidecar.run("apply", "--pages", 0, "--page-size", "2MB").status == OK
    assert memory_of_descriptors() == before


def test_refused_where_pages_are_lost(pool):
    """On every kernel that loses pages, whether the table of kernels has it or not; others are not refused, as the others show."""
    small = pool(2 * MB, 0)
    if not loses_huge_pages():
        raise Unsupported("this kernel frees the huge pages")
    answer = sidecar.run("apply", "--pages", 10, "--page-size", "2MB", "--optimize-vmemmap")
    assert answer.status == UNKNOWN and "--optimize-vmemmap is refused" in answer.stderr, answer
    assert small.persistent() == 0
