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
    def limited(new_cluster, pool):
        """Starts a server with 102 rings and without huge pages, below a limit of its processes; its children inherit it from here."""
        pool(2 * MB, 0)
        server = new_cluster(io_method="io_uring", max_connections=60)

        def start(which: int, limit: int) -> Cluster:
            soft, hard = resource.getrlimit(which)
            resource.setrlimit(which, (limit, hard))
            try:
                return create_extension(server.start())
            except StartFailed as error:
                if "io_method" not in str(error) and "not permitted" not in str(error):
                    raise
                raise Unsupported("io_method = io_uring was not tried: this PostgreSQL or this kernel has none") from error
            finally:
                resource.setrlimit(which, (soft, hard))

        return start

    @pytest.mark.parametrize("rings,crash", [(103, "fails"), (204, "base")])
    def test_locked_memory(limited, rings, crash):
        if not counts_rings():
            raise Unsupported("locked memory of rings was not tried: this kernel does not count it")
        server = limited(resource.RLIMIT_MEMLOCK, rings * RING)
        assert open_rings(server.postmaster) == 102
        [row] = server.sql("SELECT restart_outlook, crash_outlook FROM hugepage_status")
        assert row["restart_outlook"] == "base" and row["crash_outlook"] in (crash, "unknown")
        server.sql("ALTER SYSTEM SET max_connections = 300")
        [row] = server.sql("SELECT will_start, cause, detail FROM hugepage_preflight()")
        assert (row["will_start"], row["cause"]) == (False, "io_uring"), row
        assert "could not setup io_uring queue: Cannot allocate memory" in row["detail"]
        server.sql("ALTER SYSTEM RESET max_connections")
        # 18.6 keeps its rings; a server that closes them may come back before the kernel has forgotten them.
        assert server.crash() or crash == "fails"

    def test_open_files(limited):
        server = limited(resource.RLIMIT_NOFILE, 1024)
        server.stop()
        # The limit on open files may be set anew when the session of the server's user begins.
        start = f"{server.install.bindir}/pg_ctl start -w -s -D {server.data} -l {server.log_file}"
        server.command("/bin/sh", "-c", f"ulimit -n 300 && exec {start}")
        [row] = server.sql("SELECT restart_outlook FROM hugepage_status")
        assert row["restart_outlook"] == "base"
        server.sql("ALTER SYSTEM SET max_connections = 300")
        [row] = server.sql("SELECT will_start, cause, detail FROM hugepage_preflight()")
        assert (row["will_start"], row["cause"]) == (False, "io_uring"), row
        assert "Too many open files" in row["detail"]
