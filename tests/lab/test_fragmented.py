"""apply where memory is fragmented, in a guest with an unused page of 1 GB."""

import re

from harness import sidecar
from harness.cluster import Unsupported
from harness.fragmented import fragmented
from harness.kernel import meminfo, pool_numbers
from harness.sidecar import OK, WARNING
from harness.units import GB, MB

PAGES = 400


def test_a_larger_page_is_split_where_memory_is_fragmented(pool):
    """Enough memory is available, in pieces that are too small: the pool does not grow, until a page of 1 GB is split."""
    gigabyte = pool(GB, 1)
    pool(2 * MB, 0)
    with fragmented(left=200 * MB):
        assert meminfo()["MemAvailable"] > 1.2 * PAGES * 2 * MB
        failed = sidecar.run("apply", "--pages", PAGES, "--page-size", "2MB", "--drop-caches")
        assert failed.status == WARNING, failed
        given = int(re.search(rf"the kernel gave (\d+) of {PAGES} pages", failed.stderr).group(1))
        assert given < PAGES / 2 and (pool_numbers(2 * MB).nr, pool_numbers(GB).nr) == (0, 1)
        if not gigabyte.can_be_split():
            raise Unsupported("a page of 1 GB was not split: Linux 5.16 and newer can")
        answer = sidecar.run("apply", "--pages", PAGES, "--page-size", "2MB", "--demote")
        assert (answer.status, answer.stderr) == (OK, ""), answer
        assert "1 unused pages of 1 GB were split" in answer.stdout
        assert (pool_numbers(2 * MB).nr, pool_numbers(GB).nr) == (PAGES, 0)
