"""With io_method = io_uring a postmaster keeps pages at each crash; what is said of the next crash comes true."""

import pytest

from harness.cluster import Cluster, Install, StartFailed, Unsupported
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

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

    @pytest.mark.parametrize("spare,outlook", [(0, "base"), (1, "unknown"), (4, "hugetlb")])
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
        while landed[-1] == "hugetlb" and len(outlooks) < 10:
            [row] = server.sql("SELECT restart_outlook, crash_outlook FROM hugepage_status")
            assert row["restart_outlook"] == "hugetlb"
            outlooks.append(row["crash_outlook"])
            assert server.crash()
            landed.append(main_mapping(server.postmaster).landed_in)
        assert all(outlook in (landing, "unknown") for outlook, landing in zip(outlooks, landed[1:])), (outlooks, landed)
        assert landed[-1] == "base" and outlooks[0] == "hugetlb"
        server.restart()
        assert main_mapping(server.postmaster).landed_in == "hugetlb"
