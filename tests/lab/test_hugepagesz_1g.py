"""The default huge page has 1 GB, and one was reserved at boot."""

from hints import follow

from harness.kernel import meminfo
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import GB, MB


def test_default_page_of_1_gb(new_cluster, check_both):
    assert meminfo()["Hugepagesize"] == GB and meminfo()["HugePages_Free"] == 1
    server = new_cluster()
    assert server.pages_needed(GB) == 1
    create_extension(server.start())
    check_both(server, landed_in="hugetlb", page_size=GB, pages_needed=1, cause=None, restart_outlook="hugetlb")


def test_pages_of_2_mb_beside_it(new_cluster, pool, check_both):
    """The hint names the file of the size that is not the default, and is right to the page."""
    server = new_cluster(huge_page_size="2MB")
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, 0)
    create_extension(server.start())
    row = check_both(server, landed_in="base", cause="pool_empty", pages_missing=needed, restart_outlook="base")
    follow(row["hint"])
    server.restart()
    mapping = main_mapping(server.postmaster)
    assert (mapping.landed_in, mapping.page_size) == ("hugetlb", 2 * MB)


def test_two_pages_needed_and_one_there(new_cluster, check_both):
    server = new_cluster(shared_buffers="1100MB")
    create_extension(server.start())
    check_both(server, landed_in="base", pages_needed=2, pages_missing=1, cause="pool_too_small", restart_outlook="base")


def test_pool_of_2_mb_suffices_where_that_of_1_gb_does_not(new_cluster, pool, check_both):
    """The hint is to ask for the pages that are there, and takes no more memory."""
    server = new_cluster(shared_buffers="1100MB")
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(server.start())
    row = check_both(server, landed_in="base", pages_needed=2, pages_missing=1, restart_outlook="base")
    assert f"huge_page_size = 2MB ({needed} pages of 2 MB are available, {needed} are needed)" in row["hint"], row["hint"]
    server.conf(huge_page_size="2MB")
    server.restart()
    mapping = main_mapping(server.postmaster)
    assert (mapping.landed_in, mapping.page_size) == ("hugetlb", 2 * MB)
