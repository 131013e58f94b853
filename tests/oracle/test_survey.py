"""From the host to Oracle's rows: the views match `status`, and a start that loses huge pages is a regression."""

import json
from collections.abc import Iterator

import pytest
from harness import oracle_loader
from harness.oracle import Oracle, SysV
from harness.oracle_files import script
from harness.poll import until
from harness.processes import run
from harness.sidecar import UNKNOWN, binary, start
from harness.sidecar import run as sidecar
from harness.units import MB

SAME = {"kind": "kind", "verdict": "verdict", "message": "message", "hint": "hint", "landed_in": "landed_in", "page_size": "page_size",
        "cause": "cause", "shared_memory": "shared_memory", "huge_page_bytes": "huge_page_bytes", "base_page_bytes": "base_page_bytes",
        "huge_page_size": "huge_page_size", "memlock": "memlock", "pages_needed": "pages_needed", "pages_missing": "pages_missing",
        "restart_outlook": "restart_outlook", "recommended_nr_hugepages": "recommended_nr_hugepages", "pid": "pid",
        "processes": "processes", "page_tables_total": "page_tables_total", "version": "version"}
"""Columns of the files, and the equal members of `status --format json`."""
POOL = {name: name for name in ("page_size", "node", "nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages",
                                "nr_overcommit_hugepages", "available_hugepages", "cgroup_limit", "cgroup_usage")}
FINDING = {"sid": "instance", "current_value": "current", **{name: name for name in (
    "severity", "area", "setting", "recommended", "reason", "command", "takes_effect", "saving")}}
INSTALL = script("install-sql")


@pytest.fixture(autouse=True)
def fresh(twin):
    """Every test begins with an empty directory."""
    for file in twin.directory.iterdir():
        file.unlink()


@pytest.fixture
def oracle(reserved_host, root) -> Iterator[Oracle]:
    with Oracle() as oracle:
        yield oracle


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def chosen(rows, names):
    return [{mine: row[other] for mine, other in names.items()} for row in rows]


def test_rows_match_status(twin, oracle, state, tmp_path):
    """Both say the same of one survey; by the loader and by the package."""
    oracle.instance("TEST1", SysV(48 * MB), SysV(2 * MB), servers=2)
    oracle.instance("+ASM1", SysV(16 * MB))
    document = tmp_path / "status.json"
    watched = sidecar("watch", "--once", "--state-dir", state, "--json", document, "--oracle-dir", twin.directory, "--mode", "644")
    assert watched.status < UNKNOWN, watched.stderr
    said = json.loads(document.read_text())
    assert {"TEST1", "+ASM1"} <= {instance["name"] for instance in said["instances"]}
    loaded = oracle_loader.load(INSTALL, twin.directory)
    for instances, pools, findings in (
            (loaded["hp_instance"], loaded["hp_pool"], loaded["hp_finding"]),
            (twin.rows("instances"), twin.rows("pools"), twin.rows("findings"))):
        assert chosen(instances, {name: name for name in SAME}) == chosen(said["instances"], SAME)
        assert chosen(pools, {name: name for name in POOL}) == chosen(said["pools"], POOL)
        assert chosen(findings, {name: name for name in FINDING}) == chosen(said["recommendations"], FINDING)
        for row, instance in zip(instances, said["instances"], strict=True):
            assert row["notes"] == ("; ".join(instance["notes"]) or None)
            assert row["use_large_pages"] == instance["huge_pages" if instance["kind"] == "postgresql" else "use_large_pages"]
            assert row["home"] == (instance["oracle_home"] or instance["data_directory"])
            assert row["started_utc"] == instance["started"].replace("T", " ").rstrip("Z")
            assert row["memlock_unlimited"] == {True: "Y", False: "N", None: None}[instance["memlock_unlimited"]]
            assert row["sga_in_huge_pages"] == {"unknown": None, "hugetlb": "Y"}.get(instance["landed_in"], "N")
            assert instance["name"] == row["sid"] or instance["name"].startswith(row["sid"].removesuffix("..."))
    [host] = twin.run("SELECT * FROM hugepage_hosts")
    assert (host["host_name"], host["verdict"]) == (said["host_name"], said["verdict"])
    status = {row["sid"]: row for row in twin.run("SELECT * FROM hugepage_status")}
    assert status.keys() >= {"TEST1", "+ASM1"} and "postgresql" not in {row["kind"] for row in status.values()}


def test_regression(twin, oracle, pool, state):
    """Huge pages at one start, base pages at the next, huge pages again."""
    pool(2 * MB, 20)

    def started(page_size):
        instance = oracle.instance("TEST2", SysV(32 * MB, page_size=page_size), SysV(2 * MB, page_size=page_size))
        watched = sidecar("watch", "--once", "--state-dir", state, "--oracle-dir", twin.directory, "--mode", "644")
        assert watched.status < UNKNOWN, watched.stderr
        [row] = twin.run("SELECT * FROM hugepage_status WHERE sid = 'TEST2'")
        lost = twin.run("SELECT * FROM hugepage_status WHERE sid = 'TEST2' AND regression = 'Y'")
        instance.stop()
        return row, lost

    row, lost = started(2 * MB)
    assert (row["landed_in"], row["sga_in_huge_pages"], row["regression"], lost) == ("hugetlb", "Y", "N", [])
    row, [lost] = started(0)
    assert (row["landed_in"], row["sga_in_huge_pages"], row["regression"], row["verdict"]) == ("base", "N", "Y", "warning")
    assert lost["regression_detail"] == "was in huge pages of 2 MB, is in 4 kB pages"
    assert abs(lost["regression_utc"] - lost["snapshot_utc"]).total_seconds() < 5
    row, lost = started(2 * MB)
    assert (row["landed_in"], row["regression"], lost) == ("hugetlb", "N", [])


def test_watch_updates_the_files(twin, state):
    """Every survey writes a snapshot with the interval, which the package uses for staleness."""
    process = start("watch", "--interval", "1s", "--state-dir", state, "--oracle-dir", twin.directory, "--mode", "644")
    try:
        def snapshot():
            path = twin.directory / "hp_host.dat"
            lines = path.read_text().splitlines() if path.exists() else []
            return lines[1].split("|")[1] if len(lines) > 1 else None

        first = until("the first snapshot", snapshot)
        until("another one", lambda: snapshot() not in (None, first))
        [host] = oracle_loader.load(INSTALL, twin.directory)["hp_host"]
        assert host["interval_seconds"] == 1
    finally:
        process.terminate()
        process.communicate()


def test_print():
    """`print` writes a file to standard output; an unknown name is an error without output."""
    for table in oracle_loader.tables(INSTALL).values():
        text = run(binary(), "oracle", "print", table.location)
        assert table.load(text.encode()) is not None and text.splitlines()[0].split("|") == list(table.fields)
    answer = sidecar("oracle", "print", "../etc/passwd")
    assert (answer.status, answer.stdout) == (UNKNOWN, "") and "there is no file" in answer.stderr
