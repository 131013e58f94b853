"""All pages are on node 1, and the server may use both nodes."""

from harness.node_pools import nodes_of
from harness.status import create_extension
from harness.units import MB


def test_lands_on_the_node_that_has_pages(new_cluster, node_pool, check_both):
    server = new_cluster()
    node_pool({0: 0, 1: server.pages_needed(2 * MB)})
    create_extension(server.start())
    # The sidecar can't see that the server has no memory policy.
    check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb", of_sidecar={"restart_outlook": "unknown"})
    assert set(nodes_of(server.postmaster)) == {1}


def test_hint_of_a_short_pool_lands(new_cluster, node_pool, check_both):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: 0, 1: needed - 2})
    create_extension(server.start())
    check_both(server, landed_in="base", cause="pool_too_small", pages_missing=2, restart_outlook="base")
    node_pool({0: 2})
    server.restart()
    check_both(server, landed_in="hugetlb", restart_outlook="hugetlb", of_sidecar={"restart_outlook": "unknown"})
