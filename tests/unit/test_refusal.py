"""What ends a test that begins to change a host that may not be changed."""

import os
import subprocess
import sys

import pytest
from machine import REPOSITORY

TRY = """
import os, subprocess, sys
from harness import refusal
answer = sys.argv[1] or None
refusal.refusal = lambda: answer
refusal.end_tests_that_change_the_host()
try:
    exec(sys.argv[2])
except refusal.Refused as error:
    assert str(error) == refusal.REASON
    print("ended")
except (OSError, subprocess.SubprocessError):
    pass
"""


def is_ended(action: str, refusal: str = "no") -> bool:
    """Whether a test would be ended that does so."""
    done = subprocess.run([sys.executable, "-c", TRY, refusal, action], cwd=REPOSITORY / "tests", text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout == "ended\n"


CHANGES = ["open('/proc/sys/vm/none', 'w')", "os.open('/sys/none', os.O_WRONLY)", "os.mkdir('/sys/none')",
           "subprocess.run(['mount', '--help'], capture_output=True)", "subprocess.run(['true', '/usr/bin/strace'])"]


@pytest.mark.parametrize("action", CHANGES)
def test_what_changes_the_host_is_ended_where_that_is_refused(action: str) -> None:
    assert is_ended(action) and not is_ended(action, refusal="")


@pytest.mark.parametrize("action", ["open('/proc/sys/vm/nr_hugepages')", "open('/dev/null', 'w')", "subprocess.run(['true'])",
                                    "subprocess.run('true', shell=True)"])
def test_anything_else_is_not(action: str) -> None:
    assert not is_ended(action)


def test_the_refusal_is_found_by_trying() -> None:
    """Whoever may do nothing is refused."""
    ask = "from harness.refusal import refusal; print(refusal())"
    without = ["setpriv", "--no-new-privs", "--bounding-set=-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*without, sys.executable, "-c", ask], cwd=REPOSITORY / "tests", text=True, capture_output=True, check=True)
    assert done.stdout.startswith(("unshare: ", "/proc/sys/vm/")), done.stdout
