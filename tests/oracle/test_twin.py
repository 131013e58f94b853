"""The text of the package, run by PostgreSQL on the real files: its rows match ORACLE_LOADER."""

import shutil
from datetime import datetime, timedelta, timezone
from itertools import product

import psycopg2
import pytest
from harness import oracle_loader
from harness.oracle_files import script, write
from hypothesis import HealthCheck, given, settings
from snapshots import COUNTS, HOST, MEMBERS, TABLES, snapshots

pytestmark = pytest.mark.own_servers

STALE = {"instances": {"verdict": "unknown", "message": "The last snapshot of hugepage-sidecar is stale.", "hint": None},
         "hosts": {"verdict": "unknown"}}
"""What the package returns in place of an old judgement."""


@pytest.fixture(autouse=True)
def fresh(twin):
    """Every test begins with an empty directory."""
    for file in twin.directory.iterdir():
        file.unlink()


def assert_same_rows(twin):
    loaded = oracle_loader.load(twin.install, twin.directory)
    twin.load_tables()
    [stale] = twin.run("SELECT is_stale() AS is")
    for function, file in MEMBERS.items():
        wanted = [{**row, "consistent": "Y", **(STALE.get(function, {}) if stale["is"] == "Y" else {})} for row in loaded[file]]
        assert twin.rows(function, "FILE") == wanted
        assert twin.rows(function, "TABLE") == wanted


def test_rows_match_the_loader(twin):
    write(twin.directory, HOST)
    assert_same_rows(twin)
    assert len(twin.rows("instances")) == 3


@settings(max_examples=60, deadline=None, database=None,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
@given(snapshot=snapshots)
def test_rows_match_the_loader_for_any_snapshot(twin, snapshot):
    write(twin.directory, snapshot)
    assert_same_rows(twin)


def test_files_without_rows(twin):
    write(twin.directory, {})
    assert_same_rows(twin)
    assert all(twin.rows(function) == [] for function in MEMBERS)
    assert twin.run("SELECT is_stale() AS stale") == [{"stale": "Y"}]
    [check] = twin.run("SELECT check_instance('ORCL') AS says")
    assert check["says"] == "UNKNOWN: The last snapshot of hugepage-sidecar is stale."


def test_missing_file_is_an_error(twin):
    with pytest.raises(psycopg2.Error):
        twin.rows("instances")
    assert twin.run("SELECT is_stale() AS stale") == [{"stale": "Y"}]
    [check] = twin.run("SELECT check_instance('ORCL') AS says")
    assert check["says"].startswith("UNKNOWN: ")


def snapshot_with(pools, findings):
    return {**HOST, "pools": HOST["pools"][:pools], "findings": HOST["findings"][:findings]}


def test_every_mixture_of_two_snapshots_is_detected(twin, directory):
    """Also with files without records, which have no snapshot_id."""
    cases = 0
    for (pools, findings), (new_pools, new_findings) in (((0, 0), (2, 0)), ((1, 2), (1, 2)), ((2, 1), (0, 0))):
        older, newer = directory / "older", directory / "newer"
        for place, snapshot in ((older, snapshot_with(pools, findings)), (newer, snapshot_with(new_pools, new_findings))):
            place.mkdir()
            write(place, snapshot)
        for chosen in product((older, newer), repeat=4):
            for place, table in zip(chosen, TABLES.values(), strict=True):
                shutil.copy(place / table.location, twin.directory / table.location)
            rows = oracle_loader.load(twin.install, twin.directory)
            ids = {row["snapshot_id"] for records in rows.values() for row in records}
            [host] = rows["hp_host"]
            counts = [host[count] for count in COUNTS]
            whole = len(ids) == 1 and counts == [len(rows[f"hp_{count.removesuffix('_count')}"]) for count in COUNTS]
            twin.load_tables()
            for function, route in product(MEMBERS, ("FILE", "TABLE")):
                assert {row["consistent"] for row in twin.rows(function, route)} <= {"Y" if whole else "N"}
            cases += not whole
        shutil.rmtree(older)
        shutil.rmtree(newer)
    assert cases > 25


def test_a_file_of_another_snapshot_is_detected(twin, directory):
    place = directory / "other"
    place.mkdir()
    write(place, HOST)
    write(twin.directory, HOST)
    location = TABLES["hp_finding"].location
    shutil.copy(place / location, twin.directory / location)
    assert {row["consistent"] for row in twin.rows("instances")} == {"N"}
    (twin.directory / location).unlink()
    with pytest.raises(psycopg2.Error):
        twin.rows("instances")


def test_views(twin):
    write(twin.directory, HOST)
    status = twin.run("SELECT * FROM hugepage_status")
    assert [row["sid"] for row in status] == ["ORCL", "+ASM1"]
    assert list(status[0])[:3] == ["sid", "snapshot_utc", "age_seconds"]
    assert [row["sid"] for row in twin.run("SELECT * FROM hugepage_instances")] == ["ORCL", "+ASM1", "5432"]
    assert [row["node"] for row in twin.run("SELECT * FROM hugepage_pools")] == [None, 0]
    assert [row["setting"] for row in twin.run("SELECT * FROM hugepage_findings")] == ["use_large_pages", "vm.nr_hugepages"]
    [host] = twin.run("SELECT * FROM hugepage_hosts")
    assert (host["memory_total"], host["host_name"], host["consistent"]) == (64 << 30, "db1.example.com", "Y")
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    for row in status:
        assert abs(row["snapshot_utc"] - now) < timedelta(minutes=1)
        assert 0 <= row["age_seconds"] < 60 and row["this_instance"] == "N"
    assert status[0]["started_utc"] == datetime(1970, 1, 1) + timedelta(seconds=1_795_000_000)


def test_this_instance(twin):
    write(twin.directory, HOST)
    try:
        for host, name, wanted in (("DB1", "orcl", ["Y", "N"]), ("db1.other.org", "+asm1", ["N", "Y"]), ("db2", "ORCL", ["N", "N"])):
            twin.run("SELECT set_config('twin.server_host', %s, false), set_config('twin.instance_name', %s, false)", host, name)
            assert [row["this_instance"] for row in twin.run("SELECT * FROM hugepage_status")] == wanted
        twin.run("SELECT set_config('twin.server_host', 'db1', false), set_config('twin.instance_name', 'ORCL', false)")
        assert twin.run("SELECT check_instance() AS says") == [{"says": "OK: The SGA is in huge pages. "}]
    finally:
        twin.run("RESET twin.server_host; RESET twin.instance_name")


def test_check_instance(twin):
    write(twin.directory, HOST)
    for sid, says in (("orcl", "OK: The SGA is in huge pages. "), ("+ASM1", "NOTICE: The SGA is in 4 kB pages. Set use_large_pages = TRUE."),
                      ("5432", "UNKNOWN: hugepage-sidecar found no such instance on this host."),
                      ("NONE", "UNKNOWN: hugepage-sidecar found no such instance on this host.")):
        assert twin.run("SELECT check_instance(%s) AS says", sid) == [{"says": says}]


def test_commands_are_for_dbas(twin):
    write(twin.directory, HOST)
    shown = "SELECT (SELECT max(hint) FROM hugepage_status) AS hint, (SELECT max(command) FROM hugepage_findings) AS command"
    try:
        twin.run("SELECT set_config('twin.role', 'HUGEPAGE_READER', false)")
        assert twin.run(shown) == [{"hint": None, "command": None}]
    finally:
        twin.run("RESET twin.role")
    assert None not in twin.run(shown)[0].values()


def age(directory, seconds):
    """Change the files so that the snapshot is older by `seconds`."""
    for table in TABLES.values():
        file = directory / table.location
        moment = (datetime.now(timezone.utc) - timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
        lines = [line.split("|") for line in file.read_text().splitlines()]
        lines[1:] = [[*fields[:2], moment, *fields[3:]] for fields in lines[1:]]
        file.write_text("".join("|".join(fields) + "\n" for fields in lines))


@pytest.mark.parametrize("interval,seconds,limit,stale", [
    (60, 0, None, "N"), (60, 120, None, "N"), (60, 200, None, "Y"), (None, 200, None, "N"), (None, 400, None, "Y"),
    (60, 200, 300, "N"), (60, 30, 10, "Y"), (60, -120, None, "N"), (60, -400, None, "Y"),
])
def test_is_stale(twin, interval, seconds, limit, stale):
    write(twin.directory, {**HOST, "hosts": [{"interval_seconds": interval}]})
    age(twin.directory, seconds)
    assert twin.run("SELECT is_stale(%s) AS stale", limit) == [{"stale": stale}]
    [row] = twin.run("SELECT age_seconds FROM hugepage_hosts")
    assert abs(row["age_seconds"] - seconds) <= 2
    if limit is None:
        verdicts = {"Y": ["unknown"] * 2, "N": ["ok", "notice"]}[stale]
        status = twin.run("SELECT * FROM hugepage_status")
        assert [row["verdict"] for row in status] == verdicts
        assert ("The last snapshot of hugepage-sidecar is stale." in {row["message"] for row in status}) == (stale == "Y")


def test_regressions(twin):
    lost = {"regression": True, "regression_utc": 1_795_100_400, "landed_in": "mixed",
            "regression_detail": "was in huge pages of 2 MB, is in huge pages only in part"}
    write(twin.directory, {**HOST, "instances": [{**HOST["instances"][0], **lost}, *HOST["instances"][1:]]})
    [row] = twin.run("SELECT * FROM hugepage_status WHERE regression = 'Y'")
    assert (row["sid"], row["landed_in"], row["regression_detail"]) == ("ORCL", "mixed", lost["regression_detail"])
    assert row["regression_utc"] == datetime(2026, 11, 19, 15, 0)


def test_instance_in_a_container(twin):
    """Its SERVER_HOST is the name of the container, the name of the host is another."""
    contained = {**HOST["instances"][0], "instance_host": "0a1b2c3d4e5f"}
    finding = {**HOST["findings"][0], "sid": "ORCL", "instance_host": "0a1b2c3d4e5f"}
    write(twin.directory, {**HOST, "instances": [contained, *HOST["instances"][1:]], "findings": [finding]})
    try:
        for host, wanted in (("0a1b2c3d4e5f", "Y"), ("db1", "N")):
            twin.run("SELECT set_config('twin.server_host', %s, false), set_config('twin.instance_name', 'ORCL', false)", host)
            assert twin.run("SELECT this_instance FROM hugepage_status")[0]["this_instance"] == wanted
            assert twin.run("SELECT this_instance FROM hugepage_findings") == [{"this_instance": wanted}]
    finally:
        twin.run("RESET twin.server_host; RESET twin.instance_name")


def test_external_tables_alone(twin):
    """The package printed with --external-tables has the same rows, and works without the files."""
    write(twin.directory, HOST)
    twin.load_tables()
    wanted = {function: twin.rows(function) for function in MEMBERS}
    views = ("hugepage_status", "hugepage_findings", "hugepage_hosts")
    shown = {view: [row["snapshot_utc"] for row in twin.run(f"SELECT * FROM {view}")] for view in views}
    twin.run("BEGIN")
    try:
        twin.replace_package(script("install-sql", "--external-tables"))
        for file in twin.directory.iterdir():
            file.unlink()
        assert {function: twin.run(f"SELECT * FROM hugepage.{function}()") for function in MEMBERS} == wanted
        assert {view: [row["snapshot_utc"] for row in twin.run(f"SELECT * FROM {view}")] for view in views} == shown
        assert twin.run("SELECT is_stale() AS stale, check_instance('ORCL') AS says") == [
            {"stale": "N", "says": "OK: The SGA is in huge pages. "}]
    finally:
        twin.run("ROLLBACK")


@pytest.mark.parametrize("name", TABLES)
def test_old_and_new_files(twin, name):
    """Records of an older version lack columns; additional columns of a newer version are ignored."""
    write(twin.directory, HOST)
    file = twin.directory / TABLES[name].location
    function = next(function for function, stem in MEMBERS.items() if stem == name)
    whole, data = twin.rows(function), file.read_text()
    last = [column.name for column in TABLES[name].columns][-2:]
    file.write_text("".join(line.rsplit("|", 2)[0] + "\n" for line in data.splitlines()))
    assert twin.rows(function) == [{**row, **dict.fromkeys(last)} for row in whole]
    file.write_text("".join(line + "|surplus|4711\n" for line in data.splitlines()))
    assert twin.rows(function) == whole
