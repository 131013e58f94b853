"""Runs of tests on one host, one after the other, and tests of one run that share it."""

import select
import subprocess
import sys
from pathlib import Path

import pytest
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


HOLD = """
import sys
from harness import lock
lock.LOCK_FILE, lock.POOL_LOCK_FILE, lock.FILES_LOCK_FILE = sys.argv[1:4]
with eval(sys.argv[4]):
    print("holds", flush=True)
    sys.stdin.readline()
"""
SHARED, ALONE, POOL = "lock.host_lock(shared=True)", "lock.host_lock()", "lock.pool_lock()"
ANSWER, HANG = "lock.files_lock(answer=True)", "lock.files_lock(answer=False)"


def hold(place: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", HOLD, *(str(place / name) for name in ("host", "pool", "files")), how], cwd=REPOSITORY / "tests",
                            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("one, other, at_once", [(SHARED, SHARED, True), (SHARED, ALONE, False), (ALONE, SHARED, False), (SHARED, POOL, False),
                                                 (ALONE, ALONE, False), (ANSWER, ANSWER, True), (ANSWER, HANG, False), (HANG, HANG, False),
                                                 (HANG, SHARED, True)])
def test_who_holds_the_host_at_once(tmp_path: Path, one: str, other: str, at_once: bool) -> None:
    first = hold(tmp_path, one)
    assert first.stdout.readline() == "holds\n"
    second = hold(tmp_path, other)
    is_held = bool(select.select([second.stdout], [], [], 10 if at_once else 0.5)[0])
    assert is_held == at_once
    first.communicate()
    assert second.communicate()[0] == "holds\n" and (first.returncode, second.returncode) == (0, 0)


NESTED = """
import sys
from harness import lock
lock.LOCK_FILE, lock.POOL_LOCK_FILE = sys.argv[1:3]
with lock.host_lock():
    with lock.host_lock(shared=True), lock.pool_lock(), lock.pool_lock(), lock.host_lock():
        pass
with lock.host_lock(shared=True):
    with lock.pool_lock():
        pass
    try:
        with lock.host_lock():
            print("alone")
    except RuntimeError as error:
        print(error)
with lock.host_lock():
    print("free again")
"""


def test_who_shares_the_host_does_not_get_it_alone(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", NESTED, tmp_path / "host", tmp_path / "pool"], cwd=REPOSITORY / "tests", text=True,
                          capture_output=True, timeout=30)
    [refused, free] = done.stdout.splitlines()
    assert "may not be marked as sharing it" in refused and free == "free again"
