"""Two nodes with equal pools and a server that may use both."""

from harness.node_pools import node_file, nodes_of
from harness.shared_buffers import fill_shared_buffers
from harness.status import create_extension
from harness.units import MB


def test_lands_on_both_nodes(new_cluster, pool, both_say):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    assert all(int(node_file(node).read_text()) for node in (0, 1))
    create_extension(server.start())
    both_say(server, verdict="ok", landed_in="hugetlb", cause=None, restart_outlook="hugetlb")
    fill_shared_buffers(server, 120 * MB)
    assert set(nodes_of(server.postmaster)) | set(nodes_of(server.connect().info.backend_pid)) <= {0, 1}


def test_one_page_short_on_both_nodes(new_cluster, pool, both_say):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB) - 1)
    create_extension(server.start())
    both_say(server, landed_in="base", cause="pool_too_small", pages_missing=1, restart_outlook="base")
