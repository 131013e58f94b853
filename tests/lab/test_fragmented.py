"""apply where memory is fragmented, in a guest with an unused page of 1 GB."""

import re

from harness import sidecar
from harness.fragmented import fragmented
from harness.kernel import meminfo, pool_numbers
from harness.sidecar import WARNING
from harness.units import GB, MB

PAGES = 400


def test_pool_is_restored_where_memory_is_fragmented(pool):
    """Enough memory is available, in pieces that are too small: the pool does not grow, and the page of 1 GB stays."""
    pool(GB, 1)
    pool(2 * MB, 0)
    with fragmented(left=200 * MB):
        assert meminfo()["MemAvailable"] > 1.2 * PAGES * 2 * MB
        failed = sidecar.run("apply", "--yes", "--pages", PAGES, "--page-size", "2MB")
        assert failed.status == WARNING, failed
        given = int(re.search(rf"the kernel gave (\d+) of {PAGES} pages", failed.stderr).group(1))
        assert given < PAGES / 2 and (pool_numbers(2 * MB).nr, pool_numbers(GB).nr) == (0, 1)
