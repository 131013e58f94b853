"""One program for every host: it needs nothing of the one that it runs on. And a library with nothing of other databases."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cluster import Install
from harness.host_tree import Host
from harness.sidecar import OK, PROGRAM, UNKNOWN, run, static_binary
from harness.units import KB, MB

pytestmark = pytest.mark.any_major


@pytest.fixture
def empty(root, tmp_path) -> Path:
    """A root directory with nothing in it but the program."""
    shutil.copy(static_binary(), tmp_path / PROGRAM)
    return tmp_path


def within(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([f"/{PROGRAM}", *arguments], capture_output=True, text=True, timeout=60, env={},
                          preexec_fn=lambda: os.chroot(directory))


@pytest.mark.no_server
def test_it_is_linked_statically():
    ldd = subprocess.run(["ldd", static_binary()], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    assert "statically linked" in ldd.stdout or "not a dynamic executable" in ldd.stdout + ldd.stderr


@pytest.mark.no_server
def test_it_runs_where_nothing_else_is(empty):
    version = within(empty, "--version")
    assert (version.returncode, version.stderr) == (OK, "")
    assert version.stdout.startswith(f"{PROGRAM} ")
    assert within(empty, "--help").returncode == OK


def test_without_proc_and_sys_it_says_what_is_missing(empty):
    applied = within(empty, "apply", "--pages", "1", "--dry-run")
    assert applied.returncode == UNKNOWN
    assert "/sys/kernel/mm/hugepages" in applied.stderr and "No such file or directory" in applied.stderr
    said = within(empty, "status")
    assert (said.returncode, said.stderr) == (UNKNOWN, "")
    text = " ".join(said.stdout.split())
    assert 'could not open "/proc' in text and "UNKNOWN: /proc of this host could not be read. " in text


def test_a_tree_is_read_there(request, root, empty):
    """The files of one machine can be examined on one that has nothing else but /proc."""
    (empty / "proc").mkdir()
    subprocess.run(["mount", "--bind", "/proc", empty / "proc"], check=True)
    request.addfinalizer(lambda: subprocess.run(["umount", empty / "proc"], check=True))
    tree = Host(empty / "tree")
    tree.postgresql("/data", 64 * MB, 4 * KB)
    outside = run("--root", tree.directory, "status", "--format", "json", "--state-dir", "/none")
    inside = within(empty, "--root", "/tree", "status", "--format", "json", "--state-dir", "/none")
    assert (inside.returncode, inside.stdout, inside.stderr) == (outside.status, outside.stdout, "")
    assert [instance["name"] for instance in outside.json()["instances"]] == ["/data"]


@pytest.mark.no_server
def test_the_library_has_no_code_of_oracle():
    library = Path(Install.find().ask("pkglibdir"), "pg_hugepages.so")
    symbols = subprocess.run(["nm", "--demangle", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    assert "hugepage_assess" in symbols
    assert not re.findall("(?i).*(?:oracle|clusterware).*", symbols)
