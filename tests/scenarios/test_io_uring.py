"""With io_method = io_uring a postmaster keeps pages at each crash; what is said of the next crash comes true."""

import platform
import re
import resource
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install, StartFailed, Unsupported
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

RING = 8192
"""The memory of a ring of 64 entries, on 4 kB pages."""


def open_rings(pid: int) -> int:
    """The rings that a process has open."""
    links = (link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir())
    return sum(str(target) == "anon_inode:[io_uring]" for target in links)


def counts_rings() -> bool:
    """Whether the kernel counts rings as locked memory."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int(re.match(r"\d+", minor)[0])) >= (6, 14)


if Install.find().major >= 18:

    @pytest.fixture
    def with_spare_pages(new_cluster, pool):
        """Starts a server that uses io_uring, in a pool with so many pages more than it needs."""

        def start(spare: int) -> Cluster:
            server = new_cluster(io_method="io_uring")
            pool(2 * MB, server.pages_needed(2 * MB) + spare)
            try:
                return create_extension(server.start())
            except StartFailed as error:
                if "io_method" not in str(error) and "io_uring" not in str(error):
                    raise
                raise Unsupported("io_method = io_uring was not tried: this PostgreSQL or this kernel has none") from error

        return start

    @pytest.mark.parametrize("spare,outlook", [(0, "unknown"), (1, "unknown"), (4, "hugetlb")])
    def test_a_crash_keeps_pages(with_spare_pages, spare, outlook):
        server = with_spare_pages(spare)
        [row] = server.sql("SELECT restart_outlook, crash_outlook, verdict, hint, notes FROM hugepage_status")
        assert (row["restart_outlook"], row["crash_outlook"]) == ("hugetlb", outlook)
        if outlook == "hugetlb":
            assert row["verdict"] == "ok"
        else:
            assert "io_method" in f"{row['hint']} {row['notes']}", row
        assert server.crash()
        landed = main_mapping(server.postmaster).landed_in
        assert outlook in (landed, "unknown")

    def test_each_crash_keeps_more_until_a_restart(with_spare_pages):
        server = with_spare_pages(6)
        outlooks, landed = [], ["hugetlb"]
        rings = open_rings(server.postmaster)
        while landed[-1] == "hugetlb" and len(outlooks) < 10:
            [row] = server.sql("SELECT restart_outlook, crash_outlook FROM hugepage_status")
            assert row["restart_outlook"] == "hugetlb"
            outlooks.append(row["crash_outlook"])
            assert server.crash()
            landed.append(main_mapping(server.postmaster).landed_in)
        assert all(outlook in (landing, "unknown") for outlook, landing in zip(outlooks, landed[1:])), (outlooks, landed)
        assert outlooks[0] == "hugetlb"
        if open_rings(server.postmaster) == rings:
            raise Unsupported("this PostgreSQL closes its rings at a crash: nothing is kept")
        assert landed[-1] == "base"
        server.restart()
        assert main_mapping(server.postmaster).landed_in == "hugetlb"

    @pytest.fixture
    def running(new_cluster, pool) -> Cluster:
        """A server without huge pages, that asks for 102 rings."""
        pool(2 * MB, 0)
        server = new_cluster(io_method="io_uring", max_connections=60)
        try:
            return create_extension(server.start())
        except StartFailed as error:
            if "io_method" not in str(error) and "io_uring" not in str(error):
                raise
            raise Unsupported("io_method = io_uring was not tried: this PostgreSQL or this kernel has none") from error

    def outlooks(server: Cluster) -> tuple[str, str]:
        [row] = server.sql("SELECT restart_outlook, crash_outlook FROM hugepage_status")
        return row["restart_outlook"], row["crash_outlook"]

    @pytest.mark.parametrize("more,restart,crash", [(-1, "fails", "fails"), (8192, "base", "fails"), (102 * RING, "base", "base")])
    def test_locked_memory(running, more, restart, crash):
        if not counts_rings():
            raise Unsupported("locked memory of rings was not tried: this kernel does not count it")
        rings = open_rings(running.postmaster)
        limit = rings * RING + more
        resource.prlimit(running.postmaster, resource.RLIMIT_MEMLOCK, (limit, limit))
        said_restart, said_crash = outlooks(running)
        assert said_restart == restart and said_crash in (crash, "unknown")
        if restart == "fails":
            [row] = running.sql("SELECT verdict, message, hint FROM hugepage_status")
            assert row["verdict"] == "critical" and "locked memory" in row["message"], row
            assert "io_method = worker" in row["hint"], row
        survived = running.crash()
        assert said_crash == "unknown" or survived == (said_crash != "fails")

    def test_open_files(running):
        rings = open_rings(running.postmaster)
        for limit, outlook in [(rings + 60, "fails"), (2 * rings + 200, "base")]:
            resource.prlimit(running.postmaster, resource.RLIMIT_NOFILE, (limit, limit))
            assert outlooks(running)[0] == outlook

    def test_rings_of_the_configuration_on_disk(running):
        resource.prlimit(running.postmaster, resource.RLIMIT_NOFILE, (400, 400))
        running.sql("ALTER SYSTEM SET max_connections = 500")
        [row] = running.sql("SELECT will_start, cause, detail FROM hugepage_preflight()")
        assert (row["will_start"], row["cause"]) == (False, "io_uring"), row
        assert "Too many open files" in row["detail"]
