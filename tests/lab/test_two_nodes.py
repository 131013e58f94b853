"""Two nodes with equal pools and a server that may use both."""

from harness.cluster import rows
from harness.next_boot import well
from harness.node_pools import node_file, nodes_of, nodes_of_pages
from harness.processes import children
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB


def test_lands_on_both_nodes(new_cluster, pool, check_both):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    assert all(int(node_file(node).read_text()) for node in (0, 1))
    create_extension(server.start())
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", cause=None, restart_outlook="hugetlb")
    fill_shared_buffers(server, 120 * MB)
    assert set(nodes_of(server.postmaster)) | set(nodes_of(server.connect().info.backend_pid)) <= {0, 1}


def test_one_page_short_on_both_nodes(new_cluster, pool, check_both):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB) - 1)
    create_extension(server.start())
    check_both(server, landed_in="base", cause="pool_too_small", pages_missing=1, restart_outlook="base")


def nodes_after_filling(server):
    """hugepage_nodes while a session has touched 100 MB; the segment's pages by node as the kernel's files have them."""
    fill_shared_buffers(server, 100 * MB)
    with server.connect() as touching_session, server.connect() as observer:
        touch_all(touching_session)
        of_view = rows(observer, "SELECT * FROM hugepage_nodes")
        pids = [server.postmaster, *children(server.postmaster)]
        return of_view, nodes_of_pages(pids, main_mapping(server.postmaster))


def test_nodes_of_the_segment(new_cluster, node_pool):
    """All pages on one node, then spread over both."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: needed, 1: needed})
    create_extension(server.start(through=["numactl", "--preferred=1"]))
    of_view, kernel = nodes_after_filling(server)
    assert {row["node"]: row["segment_pages"] for row in of_view} == {0: 0, 1: sum(kernel.values())} == {0: 0, **kernel}
    assert [(row["nr_hugepages"], row["allowed"], row["resv_hugepages"]) for row in of_view] == [(needed, True, None)] * 2
    server.stop()
    server.start(through=["numactl", "--interleave=0,1"])
    server.sql("DROP TABLE touched")
    of_view, kernel = nodes_after_filling(server)
    assert {row["node"]: row["segment_pages"] for row in of_view} == kernel and set(kernel) == {0, 1}
