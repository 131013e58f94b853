"""A cpuset allows node 0 alone: only its pages count, because the kernel refuses a reservation beyond them."""

from harness.node_pools import node_file, nodes_of
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB


def test_pages_on_the_other_node_do_not_count(new_cluster, node_pool, group, check_both):
    """The restart changes nothing, as foretold; pages on the allowed node and a restart do."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: 0, 1: needed + 10})
    allowed = group(**{"cpuset.mems": 0})
    create_extension(server.start(within=allowed))
    row = check_both(server, landed_in="base", cause="node_limit", restart_outlook="base")
    assert "NUMA nodes" in row["hint"], row["hint"]
    server.restart(within=allowed)
    assert main_mapping(server.postmaster).landed_in == "base"
    node_file(0).write_text(str(needed))
    server.restart(within=allowed)
    check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb",
               of_sidecar={"restart_outlook": "hugetlb"})
    assert set(nodes_of(server.postmaster)) == {0}


def test_one_page_short_on_the_allowed_node(new_cluster, node_pool, group, check_both):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: needed - 1, 1: needed})
    create_extension(server.start(within=group(**{"cpuset.mems": 0})))
    check_both(server, landed_in="base", cause="node_limit", restart_outlook="base")


def test_preflight_knows_the_nodes(new_cluster, node_pool, group):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    node_pool({0: needed - 1, 1: needed})
    allowed = group(**{"cpuset.mems": 0})
    create_extension(server.start(within=allowed))
    [preflight] = server.sql("SELECT lands_in, cause FROM hugepage_preflight()")
    server.restart(within=allowed)
    assert preflight == {"lands_in": main_mapping(server.postmaster).landed_in, "cause": "node_limit"}


def test_restart_loses_pages_in_a_cpuset_joined_later(new_cluster, node_pool, group):
    """The server has its pages; in its new cpuset the next start would not get them."""
    server = new_cluster()
    node_pool({0: 0, 1: server.pages_needed(2 * MB)})
    create_extension(server.start())
    allowed = group(**{"cpuset.mems": 0})
    allowed.join(server.postmaster)
    [row] = server.sql("SELECT landed_in, restart_outlook FROM hugepage_status")
    server.restart(within=allowed)
    assert (row["landed_in"], row["restart_outlook"], main_mapping(server.postmaster).landed_in) == ("hugetlb", "base", "base")
