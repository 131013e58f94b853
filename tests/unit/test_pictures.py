"""What the documents show of the sidecar is what it prints."""

import subprocess
import sys

from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from harness import sidecar  # noqa: E402


def test_nothing_shown_is_older_than_the_program():
    done = subprocess.run([REPOSITORY / "scripts/pictures", "--check", sidecar.binary()], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done
