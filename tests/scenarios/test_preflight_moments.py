"""What goes wrong with one check of the configuration, and not with the next start: unknown, and not kept."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install, rows
from harness.own_programs import own_programs, replace_server
from harness.small_disk import small_disk
from harness.status import create_extension
from harness.units import KB

pytestmark = pytest.mark.own_servers

KILL_ONCE = "[ -e FLAG ] || { touch FLAG; kill -9 $$; }"
"""A shell's death by a signal, once."""


@pytest.fixture
def changed_programs(new_cluster) -> Iterator[Cluster]:
    """A server with programs of its own, and another shared_buffers on disk than it runs with."""
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-programs-") as place:
        os.chmod(place, 0o755)
        server = create_extension(new_cluster(install=own_programs(Install.find(), Path(place))).start())
        server.conf(shared_buffers="140MB")
        yield server
        server.stop("immediate")


def start(session) -> dict:
    [row] = rows(session, "SELECT * FROM hugepage_preflight()")
    return row


def assert_unknown(row: dict, why: str) -> None:
    assert (row["will_start"], row["lands_in"]) == (None, "unknown") and why in row["detail"], row


def test_killed_once(changed_programs):
    server = changed_programs
    flag = server.root / "killed"
    replace_server(server.install, KILL_ONCE.replace("FLAG", str(flag)) + "; exec {real} \"$@\"")
    session = server.connect()
    assert_unknown(start(session), "signal: 9")
    assert flag.exists()
    assert start(session)["lands_in"] == "base"


def test_question_that_another_major_does_not_know(changed_programs):
    server = changed_programs
    replace_server(server.install, "echo 'FATAL:  unrecognized configuration parameter "
                   "\"shared_memory_size_in_huge_pages\"' >&2; exit 1")
    assert_unknown(start(server.connect()), "unrecognized configuration parameter")


def test_nothing_printed(changed_programs):
    server = changed_programs
    replace_server(server.install, "exit 3")
    assert_unknown(start(server.connect()), "exit status: 3")


def test_temporary_files_unusable_once(new_cluster):
    server = create_extension(new_cluster().start())
    server.conf(shared_buffers="140MB")
    place = server.data / "base" / "pgsql_tmp"
    place.write_text("")
    session = server.connect()
    assert_unknown(start(session), "could not check the configuration")
    place.unlink()
    assert start(session)["lands_in"] == "base"


@pytest.mark.parametrize("leave", [0, 16 * KB])
def test_disk_full_once(new_cluster, root, leave):
    """Too full for the copies, or for what the program writes itself."""
    server = create_extension(new_cluster(shared_buffers="16MB").start())
    server.stop()
    with small_disk(server) as disk:
        server.start()
        session = server.connect()
        start(session)
        server.conf(shared_buffers="20MB")
        disk.fill(leave=leave)
        assert_unknown(start(session), "No space left on device")
        disk.empty()
        assert start(session)["lands_in"] == "base"
