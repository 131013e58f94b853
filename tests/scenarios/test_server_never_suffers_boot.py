"""boot_outlook: what the server would land in after the next boot of the host. The asker reads it, once an hour and for hugepage_preflight(); a
session reads shared memory alone. The first look after a boot is in the history.
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
    """No boot was seen."""
    if not next_boot.is_unseen():
        return
    server = new_cluster(**WATCHED)
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(start_with_etc(server, {}))
    assert awaited(server) == "unknown"
    assert "boot_unknown" in findings(server)


@pytest.mark.parametrize("told", [False, True])
def test_the_memory_of_the_boot(new_cluster, pool, told):
    """What the worker saw right after the boot counts until the sources say something else, also for a server that starts later."""
    if not next_boot.is_unseen():
        return
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    files = {"hugepage-sidecar/next-boot": f"{needed - 1} tuned\n"} if told else {}
    create_extension(start_with_etc(server, files, uptime=100))
    assert awaited(server) == "hugetlb"
    recorded = "SELECT event, detail FROM hugepage_history WHERE detail LIKE '%first look after the boot'"
    assert until("the record", lambda: server.sql(recorded)) == [{"event": "change", "detail": "first look after the boot"}]
    server.stop()
    start_with_etc(server, files, uptime=4000)
    assert awaited(server) == "hugetlb"
    assert not {"boot_loses", "boot_unknown"} & findings(server)
    (etc_of(server) / SYSCTL).parent.mkdir(exist_ok=True)
    (etc_of(server) / SYSCTL).write_text(f"vm.nr_hugepages = {needed - 1}\n")
    server.sql("SELECT * FROM hugepage_preflight()")
    assert boot_outlook(server) == "base"
    assert "boot_loses" in findings(server)


def test_what_root_says(new_cluster, pool):
    server = new_cluster(**WATCHED)
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(start_with_etc(server, {"hugepage-sidecar/next-boot": f"{needed} tuned\n"}))
    assert awaited(server) == of_host("hugetlb")


@pytest.mark.any_major
@pytest.mark.parametrize("name", [SYSCTL, "tmpfiles.d/postgresql-hugepages.conf", "hugepage-sidecar/next-boot"])
def test_a_file_that_nobody_may_read(new_cluster, pool, name):
    """It is named, and nothing is promised."""
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
