"""./dev demo where it may not change the host: in a container."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.units import MB

pytestmark = pytest.mark.any_major

DEMO = Path(__file__).parents[1] / "demo.py"
# With a lock of its own, because this test holds that of the host.
CONTAINER = """mount -t tmpfs none /run/lock && mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
mount -o remount,bind,ro /sys && exec "$@"
"""


def test_one_row_with_the_pool_as_it_is(pool):
    """Its free pages stay where they are, and a line says why there are no more."""
    pool(2 * MB, 4)
    done = subprocess.run(["unshare", "--mount", "sh", "-c", CONTAINER, "sh", sys.executable, DEMO], capture_output=True, text=True,
                          timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nCan't reserve huge pages: /proc/sys/vm/nr_hugepages: Read-only file system.\n" in done.stdout
    assert re.findall(r"^available_hugepages +\| (.*)", done.stdout, re.MULTILINE) == ["4"]
