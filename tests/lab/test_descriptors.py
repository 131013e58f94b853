"""A pool of a kernel that gives back its descriptors of the pages in a huge page, in a guest alone: such pages leave memory in pieces."""

from descriptors import OPTIMIZE, memory_of_descriptors, needs_optimizing

from harness import sidecar
from harness.sidecar import OK
from harness.units import KB, MB

PAGES = 256


def test_saves_the_memory_of_page_descriptors(pool):
    """28 kB of each page of 2 MB, which every number that the host can hold counts."""
    needs_optimizing()
    pool(2 * MB, 0)
    before = memory_of_descriptors()
    plain = sidecar.run("apply", "--yes", "--pages", 50, "--page-size", "2MB")
    assert plain.status == OK and memory_of_descriptors() == before
    OPTIMIZE.write_text("1")
    try:
        answer = sidecar.run("apply", "--yes", "--pages", 50 + PAGES, "--page-size", "2MB")
    finally:
        OPTIMIZE.write_text("0")
    assert (answer.status, answer.stderr) == (OK, ""), answer
    saved = before - memory_of_descriptors()
    assert abs(saved - PAGES * 28 * KB) <= 0.05 * PAGES * 28 * KB, saved
    assert sidecar.run("apply", "--yes", "--pages", 0, "--page-size", "2MB").status == OK
    assert memory_of_descriptors() == before
