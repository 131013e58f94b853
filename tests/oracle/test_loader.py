"""The emulated ORACLE_LOADER loads all files of the sidecar by the DDL, and rejects invalid records."""

import shutil
from datetime import datetime, timedelta, timezone

import pytest
from harness import oracle_loader
from harness.oracle_files import Writer, public_directory, script, write
from harness.oracle_loader import Refused
from hypothesis import HealthCheck, given, settings
from snapshots import (COMMANDS, COUNTS, ELSEWHERE, HOST, INSTRUCTIONS, MAX_RECORD_BYTES, MEMBERS, PROSE, TABLES, sanitised,
                       snapshots)

pytestmark = pytest.mark.no_server

INSTALL = script("install-sql")
LAST_SECOND = 253_402_300_799


@pytest.fixture(scope="module")
def writer():
    directory = public_directory()
    with Writer(directory) as writer:
        yield writer
    shutil.rmtree(directory)


def utc(seconds):
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S").zfill(19)


def expected(column, value):
    """The value that Oracle must return if the record is short enough."""
    if value is None:
        return None
    if column.type == "NUMBER":
        return value
    if column.name.endswith("_utc"):
        return utc(value) if value <= LAST_SECOND else None
    if column.size == 1:
        return "Y" if value else "N"
    text = sanitised(value)
    if column.name in COMMANDS + INSTRUCTIONS and (text != value or len(text) > column.size):
        return ELSEWHERE if column.name in INSTRUCTIONS else None
    if len(text) <= column.size:
        return text or None
    kept = text[:column.size - 3]
    if column.name in PROSE:
        kept = text[:column.size - 3].rpartition(" ")[0].rstrip(" ")
        return f"{kept} ..." if kept else None
    return kept.rstrip(" ") + "..."


def check(table, given, loaded):
    columns = [column for column in table.columns if column.name in given]
    wanted = {column.name: expected(column, given[column.name]) for column in columns}
    length = sum(len(str(value)) + 1 for value in {**loaded, **wanted}.values() if value is not None)
    length += sum(1 for value in {**loaded, **wanted}.values() if value is None)
    for column in columns:
        found, full = loaded[column.name], wanted[column.name]
        if found != full:
            assert length > MAX_RECORD_BYTES and column.name in (*PROSE, *INSTRUCTIONS, *COMMANDS), (column, given[column.name], found, full)
            assert found is None or (column.name in INSTRUCTIONS and found == ELSEWHERE) or (
                column.name in PROSE and found.endswith(" ...") and full.startswith(found.removesuffix(" ...")))


@settings(max_examples=250, deadline=None, database=None,
          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
@given(snapshot=snapshots)
def test_every_snapshot_loads(writer, snapshot):
    snapshot_id = writer.write(snapshot)
    loaded = oracle_loader.load(INSTALL, writer.directory)
    given = {file: snapshot[member] for member, file in MEMBERS.items()}
    for name, records in given.items():
        table, rows = TABLES[name], loaded[name]
        assert len(rows) == len(records)
        for line in (writer.directory / table.location).read_bytes().splitlines(keepends=True):
            assert line.endswith(b"\n") and len(line) <= MAX_RECORD_BYTES
        for record, row in zip(records, rows):
            assert (row["format_version"], row["snapshot_id"]) == (1, snapshot_id)
            check(table, {"host_name": snapshot["host_name"], **record}, row)
            assert all(row[column] is None for column in row.keys() - record.keys()
                       - {"format_version", "snapshot_id", "snapshot_utc", "host_name", *COUNTS})
    [host] = loaded["hp_host"]
    assert [host[count] for count in COUNTS] == [len(snapshot[f"{count.removesuffix('_count')}s"]) for count in COUNTS]


def test_header_lists_the_columns(directory):
    write(directory, HOST)
    for table in TABLES.values():
        header = (directory / table.location).read_text().splitlines()[0]
        assert header.split("|") == [column.name for column in table.columns] == list(table.fields)


@pytest.fixture
def instance_file(directory):
    write(directory, HOST)
    table = TABLES["hp_instance"]
    return table, (directory / table.location).read_bytes()


def test_widths_match_the_fields(instance_file):
    table, _ = instance_file
    for column in table.columns:
        assert table.fields[column.name] == column.size
        assert column.type == "NUMBER" or column.size <= 4000


@pytest.mark.parametrize("old,new,code", [
    (b"ORCL", b"O" * 65, "KUP-04026"), (b"4711", b"4711x", "ORA-01722"), (b"4711", b"4711.5", "ORA-01438"),
    (b"ORCL", "ÖRCL".encode(), "KUP-04020"), (b"4711", b"1" * 21, "KUP-04026"), (b"oracle|", b"ora|cle|", "KUP-04026|ORA-01722"),
    (b"|ok|", b"|ok\n|", "KUP-04026|ORA-01722"),
])
def test_emulation_refuses_bad_records(instance_file, old, new, code):
    table, data = instance_file
    assert old in data and table.load(data)
    with pytest.raises(Refused, match=code):
        table.load(data.replace(old, new, 1))


@pytest.mark.parametrize("old,new", [
    ("CHAR(20)", "INTEGER EXTERNAL(20)"), ("SKIP 1", "SKIP x"), (" NOLOGFILE", ""), ("REJECT LIMIT 0", "REJECT LIMIT UNLIMITED"),
    ("MISSING FIELD VALUES ARE NULL ", ""), ("sid CHAR(64),", ""), ("TERMINATED BY '|'", "TERMINATED BY '|' OPTIONALLY ENCLOSED BY '\"'"),
    ("US7ASCII", "AL32UTF8"), ("sid CHAR(64)", "pid CHAR(64)"),
])
def test_emulation_refuses_other_ddl(old, new):
    start = INSTALL.index("CREATE TABLE HUGEPAGE.hp_instance ")
    ddl = INSTALL[start:INSTALL.index(";\n", start) + 1]
    assert old in ddl and oracle_loader.table(ddl)
    with pytest.raises((Refused, ValueError)):
        oracle_loader.table(ddl.replace(old, new, 1))


def test_narrower_table_refuses_records(instance_file):
    """The loader checks the widths of the DDL, not those of the writer."""
    _, data = instance_file
    start = INSTALL.index("CREATE TABLE HUGEPAGE.hp_instance ")
    ddl = INSTALL[start:INSTALL.index(";\n", start) + 1]
    with pytest.raises(Refused, match="KUP-04026.*sid"):
        oracle_loader.table(ddl.replace("sid CHAR(64)", "sid CHAR(3)")).load(data)
    with pytest.raises(Refused, match="ORA-12899"):
        oracle_loader.table(ddl.replace("sid VARCHAR2(64)", "sid VARCHAR2(3)")).load(data)


def without_last(ddl, count):
    """The DDL of an older version with fewer columns."""
    table = oracle_loader.table(ddl)
    for column in [column.name for column in table.columns][-count:]:
        ddl = ddl.replace(f",\n  {column} {TYPES[column]}", "").replace(f",\n      {column} CHAR({table.fields[column]})", "")
    older = oracle_loader.table(ddl)
    assert len(older.columns) == len(table.columns) - count
    return older


TYPES = {column.name: f"{column.type}({column.size})" for table in TABLES.values() for column in table.columns}


@pytest.mark.parametrize("name", TABLES)
def test_new_file_under_old_table_and_old_file_under_new_table(directory, name):
    write(directory, HOST)
    table = TABLES[name]
    data = (directory / table.location).read_bytes()
    start = INSTALL.index(f"CREATE TABLE HUGEPAGE.{name} ")
    older = without_last(INSTALL[start:INSTALL.index(";\n", start) + 1], 3)
    rows = table.load(data)
    last = [column.name for column in table.columns][-3:]
    assert older.load(data) == [{name: value for name, value in row.items() if name not in last} for row in rows]
    old_data = b"".join(line.rsplit(b"|", 3)[0] + b"\n" for line in data.splitlines())
    assert table.load(old_data) == [{**row, **dict.fromkeys(last)} for row in rows]


def test_files_without_records_load_empty(directory):
    write(directory, {})
    assert oracle_loader.load(INSTALL, directory) == dict.fromkeys(TABLES, [])
