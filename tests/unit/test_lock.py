"""Runs of tests on one host, one after the other."""

import subprocess
import sys
from pathlib import Path

from machine import REPOSITORY

RUN = """
import sys
from harness import lock
lock.RUN_LOCK_FILE = sys.argv[1]
with lock.run_lock(lambda: print("waits", flush=True)):
    print("runs", flush=True)
    sys.stdin.readline()
"""


def start(file: Path) -> subprocess.Popen[str]:
    """A run that ends when its standard input does."""
    return subprocess.Popen([sys.executable, "-c", RUN, str(file)], cwd=REPOSITORY / "tests", text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def test_a_second_run_says_that_it_waits(tmp_path: Path) -> None:
    first = start(tmp_path / "lock")
    assert first.stdout.readline() == "runs\n"
    second = start(tmp_path / "lock")
    assert second.stdout.readline() == "waits\n" and second.poll() is None
    first.communicate()
    assert second.stdout.readline() == "runs\n"
    second.communicate()
    assert (first.returncode, second.returncode) == (0, 0)


def test_a_run_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    first = start(tmp_path / "lock")
    assert first.stdout.readline() == "runs\n"
    first.kill()
    first.communicate()
    second = start(tmp_path / "lock")
    assert second.communicate()[0] == "runs\n" and second.returncode == 0
