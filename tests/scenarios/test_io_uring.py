"""With io_method = io_uring a start that may get huge pages is unknown: the rings take what nobody calculates."""

import platform
import re
import resource

import pytest

from harness.cluster import Cluster, Install, StartFailed, Unsupported
from harness.smaps import main_mapping
from harness.status import NOT_CHECKED, create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers

LIMIT = 103 * 8192
"""Locked memory for one ring more than a server with 60 connections has, of 8 kB each (64 entries, on 4 kB pages)."""

STATUS = """SELECT restart_outlook, crash_outlook, notes, ARRAY(SELECT finding FROM hugepage_findings) AS findings
FROM hugepage_status"""


def start(server: Cluster) -> Cluster:
    """Starts a server that uses io_uring."""
    try:
        return create_extension(server.start())
    except StartFailed as error:
        if "io_method" not in str(error) and "io_uring" not in str(error):
            raise
        raise Unsupported("io_method = io_uring was not tried: this PostgreSQL or this kernel has none") from error


def counts_rings() -> bool:
    """Whether the kernel counts rings as locked memory."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(re.match(r"\d+", minor)[0])) >= (6, 14)


if Install.find().major >= 18:

    @pytest.mark.parametrize("spare", [0, 4])
    def test_a_crash_and_a_restart_are_unknown(new_cluster, pool, spare):
        server = new_cluster(io_method="io_uring")
        pool(2 * MB, server.pages_needed(2 * MB) + spare)
        start(server)
        for _ in range(spare + 2):
            [row] = server.sql(STATUS)
            assert (row["restart_outlook"], row["crash_outlook"]) == ("unknown", "unknown"), row
            assert "io_uring" in " ".join(row["notes"]) and "outlook_unknown" in row["findings"], row
            assert server.crash()
        server.restart()
        assert main_mapping(server.postmaster).landed_in == "hugetlb"

    def test_rings_on_disk_make_a_start_unknown(new_cluster, pool):
        server = new_cluster(max_connections=60, io_method="worker")
        pool(2 * MB, 2 * server.pages_needed(2 * MB))
        create_extension(server.start())
        [row] = server.sql("SELECT lands_in, will_start, detail FROM hugepage_preflight()")
        assert row == {"lands_in": "hugetlb", "will_start": True, "detail": NOT_CHECKED}
        try:
            server.sql("ALTER SYSTEM SET io_method = io_uring")
        except Exception as error:
            raise Unsupported("io_method = io_uring was not tried: this PostgreSQL has none") from error
        [row] = server.sql("SELECT lands_in, will_start, detail FROM hugepage_preflight()")
        assert (row["lands_in"], row["will_start"]) == ("unknown", None) and "RLIMIT_MEMLOCK" in row["detail"], row

    def test_more_rings_than_may_be_locked(new_cluster, pool):
        if not counts_rings():
            raise Unsupported("locked memory of rings was not tried: this kernel does not count it")
        pool(2 * MB, 0)
        server = new_cluster(io_method="io_uring", max_connections=60)
        soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (LIMIT, hard))
        try:
            start(server)
            server.sql("ALTER SYSTEM SET max_connections = 300")
            [row] = server.sql("SELECT lands_in, will_start, detail FROM hugepage_preflight()")
            assert (row["lands_in"], row["will_start"]) == ("base", None) and "RLIMIT_MEMLOCK" in row["detail"], row
            server.stop()
            with pytest.raises(StartFailed, match="could not setup io_uring queue"):
                server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))
