"""Every size of huge page that the kernel has, with its own default and its own base page.

amd64 has 2 MB, the default, and 1 GB. arm64 has 64 kB, 2 MB, 32 MB and 1 GB with base pages of 4 kB, and 2 MB, 32 MB, the
default, and 1 GB with base pages of 16 kB.
"""

from harness.cluster import Unsupported
from harness.kernel import meminfo
from harness.pool import pools
from harness.smaps import BASE_PAGE, main_mapping
from harness.status import create_extension
from harness.units import KB, MB


def page_sizes_of_main(server):
    """The page size of the main segment as the view and as the kernel have it."""
    [row] = server.sql("SELECT page_size FROM hugepage_segments WHERE segment = 'main'")
    return row["page_size"], main_mapping(server.postmaster).page_size


def test_default_size_lands(new_cluster, pool, check_both):
    server = new_cluster()
    size = meminfo()["Hugepagesize"]
    pool(size, server.pages_needed(size))
    create_extension(server.start())
    check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb", pages_missing=0)
    assert page_sizes_of_main(server) == (size, size)


def test_one_page_of_the_default_size_short(new_cluster, pool, check_both):
    server = new_cluster()
    size = meminfo()["Hugepagesize"]
    pool(size, server.pages_needed(size) - 1)
    create_extension(server.start())
    check_both(server, landed_in="base", cause="pool_too_small", restart_outlook="base", pages_missing=1)
    assert page_sizes_of_main(server) == (BASE_PAGE, BASE_PAGE)


def test_every_smaller_and_larger_size_lands(new_cluster, pool, check_both):
    """As huge_page_size; not 1 GB, for which the guest has no memory."""
    server = new_cluster()
    others = [one.page_size for one in pools() if one.page_size != meminfo()["Hugepagesize"] and one.page_size <= 32 * MB]
    pool(2 * MB, 0)
    if not others:
        raise Unsupported("this kernel has pages of the default size and of 1 GB only")
    for number, size in enumerate(others):
        server.stop()
        server.conf(huge_page_size=f"{size // KB}kB")
        pool(size, server.pages_needed(size))
        server.start()
        if number == 0:
            create_extension(server)
        check_both(server, landed_in="hugetlb", cause=None, restart_outlook="hugetlb", pages_missing=0)
        assert page_sizes_of_main(server) == (size, size)


def test_pools_and_outlook_of_each_size(new_cluster, pool):
    """hugepage_pools has the kernel's pools; hugepage_preflight() knows another size's need and that its pool is empty."""
    server = new_cluster()
    size = meminfo()["Hugepagesize"]
    needed = {one.page_size: server.pages_needed(one.page_size) for one in pools()}
    pool(size, needed[size])
    create_extension(server.start())
    seen = server.sql("SELECT page_size, nr_hugepages, is_default FROM hugepage_pools")
    assert {(row["page_size"], row["nr_hugepages"], row["is_default"]) for row in seen} == {
        (one.page_size, one.numbers().nr, one.page_size == size) for one in pools()}
    for other in needed.keys() - {size}:
        server.conf(huge_page_size=f"{other // KB}kB")
        [preflight] = server.sql("SELECT lands_in, page_size, pages_needed, pages_missing FROM hugepage_preflight()")
        assert preflight == {"lands_in": "base", "page_size": BASE_PAGE, "pages_needed": needed[other], "pages_missing": needed[other]}
