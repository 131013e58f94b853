"""What PostgreSQL says of its shared memory itself, beside our views. A server is asked what it has of that; 15 has nothing."""

import time

import pytest

from harness.cluster import Cluster, Unsupported, rows
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers


def needs(server: Cluster, *names: str) -> list[str]:
    """Those of these settings and relations that the server has; Unsupported without any."""
    found = server.sql("SELECT name FROM unnest(%s) AS name WHERE to_regclass(name) IS NOT NULL "
                       "OR name IN (SELECT s.name FROM pg_settings s)", list(names))
    if not found:
        raise Unsupported(f"this PostgreSQL has no {' or '.join(names)}, so nothing was compared with it")
    return [row["name"] for row in found]


def needs_numa(server: Cluster) -> None:
    if not server.sql("SELECT pg_numa_available() AS is_there")[0]["is_there"]:
        raise Unsupported("the NUMA nodes were not compared: this PostgreSQL was built without libnuma")


def started(server: Cluster, pool, landed_in: str) -> Cluster:
    pool(2 * MB, server.pages_needed(2 * MB) if landed_in == "hugetlb" else 0)
    create_extension(server.start())
    assert main_mapping(server.postmaster).landed_in == landed_in
    return server


@pytest.mark.parametrize("huge_pages,landed_in", [("on", "hugetlb"), ("try", "hugetlb"), ("try", "base"), ("off", "base")])
def test_huge_pages_status(new_cluster, pool, huge_pages, landed_in):
    server = started(new_cluster(huge_pages=huge_pages), pool, landed_in)
    needs(server, "huge_pages_status")
    [row] = server.sql("SELECT shared_buffers_in_huge_pages AS ours, current_setting('huge_pages_status') AS theirs "
                       "FROM hugepage_status")
    assert row == {"ours": landed_in == "hugetlb", "theirs": "on" if landed_in == "hugetlb" else "off"}


@pytest.mark.parametrize("landed_in", ["hugetlb", "base"])
def test_pages_of_the_buffers(new_cluster, pool, landed_in):
    """pg_buffercache numbers the pages of the buffer pool: as many as ours says of their size, on the nodes that ours says."""
    server = started(new_cluster(), pool, landed_in)
    server.sql("CREATE EXTENSION pg_buffercache")
    views = needs(server, "pg_buffercache_os_pages", "pg_buffercache_numa")
    [of_extension] = server.sql("SELECT page_size, shared_buffers, pages_needed FROM hugepage_status")
    pages = -(-of_extension["shared_buffers"] // of_extension["page_size"])
    for view in views:
        if view == "pg_buffercache_numa":
            needs_numa(server)
        with server.connect() as touching_session:
            [of_postgresql] = rows(touching_session, "SELECT count(DISTINCT os_page_num) AS pages, count(DISTINCT bufferid) AS buffers "
                                     f"FROM {view}")
            assert of_postgresql["buffers"] * 8192 == of_extension["shared_buffers"], view
            # The first one may begin within a page.
            assert pages <= of_postgresql["pages"] <= pages + 1, view
            if view == "pg_buffercache_numa" and landed_in == "hugetlb":
                of_postgresql = {row["numa_node"]: row["pages"] for row in rows(
                    touching_session, f"SELECT numa_node, count(DISTINCT os_page_num) AS pages FROM {view} GROUP BY numa_node")}
                beside = of_extension["pages_needed"] - sum(of_postgresql.values())
                for row in server.sql("SELECT node, segment_pages FROM hugepage_nodes"):
                    assert 0 <= row["segment_pages"] - of_postgresql.get(row["node"], 0) <= beside


def test_nodes(new_cluster, pool):
    """pg_shmem_allocations_numa touches every page in its own session; hugepage_nodes finds them all from another one, in
    less than a hundredth of that time, and touches none."""
    server = started(new_cluster(shared_buffers="512MB"), pool, "hugetlb")
    needs(server, "pg_shmem_allocations_numa")
    needs_numa(server)
    touching_session, observer = server.connect(), server.connect()

    def timed(session, query: str) -> tuple[float, list[dict]]:
        began = time.perf_counter()
        found = rows(session, query)
        return time.perf_counter() - began, found

    def of_extension() -> tuple[float, dict[int, int]]:
        """The shortest of some calls; each finds the same."""
        took, found = zip(*(timed(observer, "SELECT node, segment_pages FROM hugepage_nodes") for _ in range(10)))
        assert all(one == found[0] for one in found)
        return min(took), {row["node"]: row["segment_pages"] for row in found[0]}

    rows(observer, "SELECT * FROM hugepage_nodes")    # loads the library
    before = main_mapping(observer.info.backend_pid).resident
    with_little_touched, _ = of_extension()
    postgresql_took, _ = timed(touching_session, "SELECT count(*) FROM pg_shmem_allocations_numa")
    with_all_touched, found = of_extension()
    assert main_mapping(observer.info.backend_pid).resident == before
    assert max(with_little_touched, with_all_touched) < postgresql_took / 100, (with_little_touched, with_all_touched, postgresql_took)
    # An allocation counts each page that it lies on, so one that ends within a page counts it as the next one does.
    of_postgresql = rows(touching_session, "SELECT numa_node, sum(size) AS size, count(*) AS entries FROM pg_shmem_allocations_numa "
                           "WHERE size > 0 GROUP BY numa_node")
    for row in of_postgresql:
        assert 0 <= row["size"] // (2 * MB) - found[row["numa_node"]] <= row["entries"]
    assert {row["numa_node"] for row in of_postgresql} == {node for node, pages in found.items() if pages}
    assert sum(found.values()) == main_mapping(touching_session.info.backend_pid).resident // (2 * MB)
