"""boot_outlook: what the server would land in after the next boot of the host. The asker reads it, once an hour and for hugepage_preflight(); a
session reads shared memory alone.
"""

import pytest

from harness import next_boot
from harness.cluster import Cluster, rows
from harness.own_etc import SYSCTL, etc_of, start_with_etc
from harness.poll import until
from harness.preloaded import WATCHED
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers


def boot_outlook(server: Cluster) -> str | None:
    return server.sql("SELECT boot_outlook FROM hugepage_status")[0]["boot_outlook"]


def awaited(server: Cluster) -> str:
    """The first answer: the worker has it asked at its start."""
    return until("the asker's first answer", lambda: boot_outlook(server))


def of_host(outlook: str) -> str:
    """In a container the files are not those of what boots."""
    return "unknown" if next_boot.is_container() else outlook


def findings(server: Cluster) -> set[str]:
    return {row["finding"] for row in server.sql("SELECT finding FROM hugepage_findings")}


def test_last_column(new_cluster):
    """Nobody has looked where the library is not preloaded."""
    server = create_extension(new_cluster(huge_pages=False).start())
    with server.connect().cursor() as cursor:
        cursor.execute("SELECT * FROM hugepage_status")
        assert cursor.description[-1].name == "boot_outlook"
    assert boot_outlook(server) is None
    assert "boot_loses" not in findings(server)


@pytest.mark.parametrize("huge_pages, lost", [("try", "base"), (True, "fails")])
def test_what_sysctl_sets(new_cluster, pool, huge_pages, lost):
    """And what it is changed to, when somebody asks; each time a session says it of what the asker read."""
    server = new_cluster(huge_pages=huge_pages, **WATCHED)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(start_with_etc(server, {SYSCTL: f"vm.nr_hugepages = {needed}\n"}))
    assert awaited(server) == of_host("hugetlb")
    assert "boot_loses" not in findings(server)
    session = server.connect()
    for count, expected in ((needed - 1, lost), (needed, "hugetlb"), (0, lost)):
        (etc_of(server) / SYSCTL).write_text(f"vm.nr_hugepages = {count}\n")
        rows(session, "SELECT * FROM hugepage_preflight()")
        assert [row["boot_outlook"] for row in rows(session, "SELECT * FROM hugepage_status")] == [of_host(expected)]
        assert ("boot_loses" in findings(server)) == (of_host(expected) == lost)


def test_nothing_sets_the_pool(new_cluster, pool):
    if not next_boot.is_unset():
        return
    server = new_cluster(**WATCHED)
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(start_with_etc(server, {}))
    assert awaited(server) == "base"
    assert "boot_loses" in findings(server)


@pytest.mark.any_major
@pytest.mark.parametrize("name", ["cron.d/of-a-test", SYSCTL, "tmpfiles.d/zz-of-a-test.conf"])
def test_a_file_that_nobody_may_read(new_cluster, pool, name):
    """As Ubuntu's cloud-init and Red Hat's /boot: it is named, and nothing is promised."""
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(start_with_etc(server, {name: f"vm.nr_hugepages = {needed}\n"}))
    (etc_of(server) / name).chmod(0)
    server.sql("SELECT * FROM hugepage_preflight()")
    [row] = server.sql("SELECT * FROM hugepage_status")
    assert next_boot.is_container() or any(f"/etc/{name}" in note for note in row["notes"]), row["notes"]
    assert row["boot_outlook"] == "unknown"
    assert "boot_loses" not in findings(server)
