"""numactl(8) sets the policy of the server: since Linux 5.9 the kernel counts the pages of the nodes that MPOL_BIND allows."""

from harness.next_boot import well
from harness.node_pools import node_file, nodes_of
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

BOUND = ["numactl", "--membind=0"]


def test_membind_to_a_node_without_pages(new_cluster, node_pool, check_both):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: 0, 1: needed + 10})
    create_extension(server.start(through=BOUND))
    # The sidecar can't see the policy, so it does not know.
    row = check_both(server, landed_in="base", cause="node_limit", restart_outlook="base",
                     of_sidecar={"cause": "unknown", "restart_outlook": "unknown"})
    assert "NUMA nodes" in row["hint"], row["hint"]
    server.stop()
    server.start(through=BOUND)
    assert main_mapping(server.postmaster).landed_in == "base"
    node_file(0).write_text(str(needed))
    server.stop()
    server.start(through=BOUND)
    assert main_mapping(server.postmaster).landed_in == "hugetlb" and set(nodes_of(server.postmaster)) == {0}


def test_membind_and_an_empty_pool(new_cluster, node_pool, check_both):
    """Pages of the host would be spread over the node that it may not use."""
    server = new_cluster()
    node_pool({0: 0, 1: 0})
    create_extension(server.start(through=BOUND))
    row = check_both(server, landed_in="base", restart_outlook="base")
    assert row["hint"].startswith("Before its next start give the NUMA nodes"), row["hint"]


def test_membind_to_the_node_with_the_pages(new_cluster, node_pool, check_both):
    server = new_cluster()
    node_pool({0: server.pages_needed(2 * MB), 1: 0})
    create_extension(server.start(through=BOUND))
    check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb", of_sidecar={"restart_outlook": "unknown"})


def test_preferred_node_is_no_limit(new_cluster, node_pool, check_both):
    server = new_cluster()
    node_pool({0: 0, 1: server.pages_needed(2 * MB)})
    create_extension(server.start(through=["numactl", "--preferred=0"]))
    check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb", of_sidecar={"restart_outlook": "unknown"})


def test_interleaved_lands(new_cluster, pool, check_both):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start(through=["numactl", "--interleave=all"]))
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", cause=None, restart_outlook="hugetlb")
