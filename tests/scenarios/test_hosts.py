"""More than one server on the host, and a standby."""

import pytest

from harness.status import assert_hint_is_exact, checked_status, command_of, create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers


def test_second_cluster_is_counted(new_cluster, pool):
    first, second = new_cluster(), new_cluster(shared_buffers="64MB")
    needed = first.pages_needed(2 * MB), second.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed[0])
    create_extension(first.start())
    create_extension(second.start())
    row = checked_status(second, landed_in="base", cause="pool_too_small" if needed[0] < needed[1] else "pool_taken",
                         pages_missing=needed[1], recommended_nr_hugepages=sum(needed))
    checked_status(first, verdict="ok", landed_in="hugetlb", recommended_nr_hugepages=needed[0])
    assert command_of(row["hint"])[1] == sum(needed)
    borrowed.resize(sum(needed))
    second.restart()
    for server in (first, second):
        checked_status(server, verdict="ok", landed_in="hugetlb", recommended_nr_hugepages=sum(needed))


def test_off_recommends_what_the_others_hold(new_cluster, pool):
    other, server = new_cluster(), new_cluster(huge_pages=False)
    taken = other.pages_needed(2 * MB)
    pool(2 * MB, taken + 5)
    other.start()
    create_extension(server.start())
    checked_status(server, verdict="notice", cause="disabled", recommended_nr_hugepages=taken + 5)


def test_touched_pages_are_counted_once(new_cluster, pool):
    """What a server has touched moves from resv to used; the recommendation stays."""
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(server.start())
    before = checked_status(server, recommended_nr_hugepages=needed)
    server.sql("CREATE TABLE filled AS SELECT repeat('x', 500) FROM generate_series(1, 60000)")
    after = checked_status(server, verdict="ok", recommended_nr_hugepages=needed)
    assert after["free_hugepages"] < before["free_hugepages"]


@pytest.mark.parametrize("landed_in", ["hugetlb", "base"])
def test_hot_standby(new_cluster, pool, landed_in):
    primary = new_cluster()
    needed = primary.pages_needed(2 * MB)
    borrowed = pool(2 * MB, 2 * needed if landed_in == "hugetlb" else needed)
    create_extension(primary.start())
    standby = new_cluster(upstream=primary).start()
    assert standby.sql("SELECT pg_is_in_recovery() AS standby") == [{"standby": True}]
    row = checked_status(standby, landed_in=landed_in, recommended_nr_hugepages=2 * needed)
    if landed_in == "base":
        assert row["cause"] == "pool_taken"
        assert_hint_is_exact(standby, row["hint"], borrowed)
