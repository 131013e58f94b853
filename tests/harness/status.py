"""Read hugepage_status and compare it with what the kernel reports, read without the extension."""

import re
from typing import Any

from harness.cgroup import limits_are_hidden
from harness.cluster import Cluster, rows
from harness.kernel import meminfo, pool_numbers
from harness.poll import until
from harness.pool import POOLS, Pool, PoolNumbers, pools
from harness.smaps import main_mapping, pmap_mapping
from harness.units import KB, pages

EXTENSION = "pg_hugepages"
HIDDEN_LIMITS = "cgroup limits that are not visible from here may apply too"


def create_extension(cluster: Cluster) -> Cluster:
    """CREATE EXTENSION in the database postgres."""
    cluster.sql(f"CREATE EXTENSION {EXTENSION}")
    return cluster


def checked_status(cluster: Cluster, session: Any = None, **expected: Any) -> dict[str, Any]:
    """The row of hugepage_status, read in a new session or in the given one.

    Asserts that it agrees with the kernel and with the expected values of its columns.
    """
    session = session or cluster.connect()
    row, pools_now = until("the pools and page tables not to change while the row is read", lambda: _read_unchanged(session))
    _assert_agrees(row, pools_now, cluster, session)
    assert {name: row[name] for name in expected} == expected, row
    return row


OF_NEXT_BOOT = ("what sets the pool at the next boot was read at ", "what the next boot gives is unknown: ")
FORGOTTEN = "the configuration files have changed since the start, and a value that the reload has refused is not seen here"
"""Until the server's program is asked."""
NOT_CHECKED = "not checked: data_directory, log_directory, pg_hba.conf, certificates, addresses, ports and socket directories"
"""The detail of a start that succeeds."""


def own_notes(row: dict[str, Any]) -> list[str]:
    """The notes of a row, without the one that every row has in a container; asserts that it is there, and only there. Without those
    on the next boot."""
    assert row["notes"].count(HIDDEN_LIMITS) == limits_are_hidden(), row["notes"]
    return [note for note in row["notes"] if note != HIDDEN_LIMITS and not note.startswith(OF_NEXT_BOOT)]


def steady(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the column that changes between two reads."""
    return {name: value for name, value in row.items() if name != "page_tables_host"}


def _read_unchanged(session: Any) -> tuple[dict[str, Any], dict[int, PoolNumbers]] | None:
    """The row and the pools by page size; None if a pool has changed in between, or the host's page tables, as with a compiler that ends:
    of these, which change with every process, only the order of magnitude is compared."""
    before = {pool.page_size: pool_numbers(pool.page_size) for pool in pools()}
    [row] = rows(session, "SELECT * FROM hugepage_status")
    after = {pool.page_size: pool_numbers(pool.page_size) for pool in pools()}
    same_page_tables = 0.2 < row["page_tables_host"] / meminfo()["PageTables"] < 5
    return (row, after) if before == after and same_page_tables else None


def _assert_agrees(row: dict[str, Any], pools_now: dict[int, PoolNumbers], cluster: Cluster, session: Any) -> None:
    """Compares with the mappings of the backend that answered, and with the postmaster's: a session has no transparent huge page before
    it touches one."""
    mapping, landed_in = main_mapping(session.info.backend_pid), main_mapping(cluster.postmaster).landed_in
    settings = {setting["name"]: setting["setting"] for setting in rows(session, "SELECT name, setting FROM pg_settings")}
    asked_size = int(settings["huge_page_size"]) * KB or meminfo()["Hugepagesize"]
    actual = {
        "landed_in": landed_in,
        "shared_buffers_in_huge_pages": landed_in == "hugetlb",
        "mapping": mapping.short_name,
        "page_size": mapping.page_size,
        "shared_memory": mapping.length,
        "shared_buffers": int(settings["shared_buffers"]) * int(settings["block_size"]),
        "huge_pages": settings["huge_pages"],
        "huge_page_size": asked_size,
    }
    if asked_size in pools_now:
        pool = pools_now[asked_size]
        actual |= {"pages_needed": pages(mapping.length, asked_size), "nr_hugepages": pool.nr,
                 "free_hugepages": pool.free, "resv_hugepages": pool.resv, "surplus_hugepages": pool.surplus,
                 "available_hugepages": pool.available}
    if landed_in == "hugetlb":
        actual |= {"cause": None, "pages_missing": 0}
    assert {name: row[name] for name in actual} == actual
    assert pmap_mapping(session.info.backend_pid, mapping.start) == (mapping.length, mapping.page_size)
    assert main_mapping(cluster.postmaster).length == mapping.length
    assert row["message"]
    # ok has no hint; warning and critical have one, unless the message calls unknown what would decide; a notice may have none.
    may_lack_hint = row["verdict"] == "notice" or row["message"].endswith("is unknown.")
    assert row["hint"] is None if row["verdict"] == "ok" else row["hint"] or may_lack_hint, row


def command_of(hint: str) -> tuple[Pool, int]:
    """The pool that the command in a hint sets, and its number of pages."""
    default = re.search(r"\bvm\.nr_hugepages=(\d+)", hint)
    if default:
        return Pool(meminfo()["Hugepagesize"]), int(default[1])
    other = re.search(rf"(\d+)\b.*{POOLS}/hugepages-(\d+)kB/nr_hugepages", hint)
    assert other, f"no command in the hint: {hint}"
    return Pool(int(other[2]) * KB), int(other[1])


def assert_hint_is_exact(cluster: Cluster, hint: str, pool: Pool) -> None:
    """Follow the hint: the restarted server lands in huge pages, and with one page less it does not."""
    named, nr = command_of(hint)
    assert named.page_size == pool.page_size
    for size, landed_in in ((nr, "hugetlb"), (nr - 1, "base")):
        cluster.stop()
        pool.resize(size)
        cluster.start()
        assert main_mapping(cluster.postmaster).landed_in == landed_in
        checked_status(cluster)
