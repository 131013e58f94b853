"""A library and a catalog of different versions: an error that names both, and a server that goes on."""

import psycopg2
import pytest

from harness.cluster import Cluster, rows
from harness.preloaded import PRELOADED
from harness.status import EXTENSION, create_extension

pytestmark = pytest.mark.own_servers

FUNCTIONS = """
SELECT p.proname AS name, p.prosrc AS symbol, p.probin AS library,
       pg_get_function_arguments(p.oid) AS arguments, columns.types AS columns, columns.names
FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
CROSS JOIN LATERAL (
    SELECT array_agg(format_type(a.atttypid, NULL) ORDER BY a.attnum) AS types, array_agg(a.attname::text ORDER BY a.attnum) AS names
    FROM pg_type t JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0
    WHERE t.oid = p.prorettype
) AS columns
WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = %s)
ORDER BY p.prosrc
"""


def functions(server: Cluster) -> list[dict]:
    return server.sql(FUNCTIONS, EXTENSION)


def listed(like: dict, columns: list[str], names: list[str] | None = None) -> str:
    """Columns of these types, with the names of a function's columns, or others."""
    names = [*(names or like["names"]), *(f"more_{number}" for number in range(len(columns)))]
    return ", ".join(f"{name} {kind}" for name, kind in zip(names, columns))


class Beside:
    """A session that declares functions over symbols of the library, and a bystander that a crash would end."""

    def __init__(self, server: Cluster) -> None:
        self.session, self.bystander = server.connect(), server.connect()
        self.number = 0

    def declare(self, like: dict, columns: list[str] | None = None, *, names: list[str] | None = None, returns: str = "",
                arguments: str | None = None) -> str:
        """A function over the symbol of another one; its call. Columns have the names of that one's, if no others are given."""
        self.number += 1
        name = f"declared_{self.number}"
        if columns:
            returns = f"TABLE ({listed(like, columns, names)})"
        arguments = like["arguments"] if arguments is None else arguments
        rows(self.session, f"CREATE FUNCTION {name}({arguments}) RETURNS {returns} LANGUAGE c AS '{like['library']}', '{like['symbol']}'")
        return f"{name}()"

    def error(self, statement: str) -> psycopg2.Error:
        """The error of a statement in the session, which lives on, as the bystander does."""
        with pytest.raises(psycopg2.Error) as raised:
            rows(self.session, statement)
        assert rows(self.session, "SELECT 1 AS alive") == rows(self.bystander, "SELECT 1 AS alive") == [{"alive": 1}], statement
        return raised.value

    def mismatch(self, statement: str) -> None:
        error = self.error(statement)
        assert isinstance(error, psycopg2.errors.ObjectNotInPrerequisiteState), (statement, error)
        assert "has other columns than the library of pg_hugepages returns" in error.diag.message_primary


def test_other_columns(new_cluster):
    """Every function that returns rows, declared with more columns, fewer, and others, wherever it is called."""
    server = create_extension(new_cluster().start())
    beside = Beside(server)
    found = [function for function in functions(server) if function["columns"]]
    assert len(found) >= 11
    for function in found:
        right = function["columns"]
        swapped = ["text" if kind == "bigint" else "bigint" for kind in right]
        for columns in (right + ["text"] * 60, right + ["bigint"], right[:-1], swapped, [*right[:-1], "point"]):
            call = beside.declare(function, columns)
            beside.mismatch(f"SELECT * FROM {call}")
            beside.mismatch(f"SELECT count(*) FROM {call}")
            beside.mismatch(f"SELECT {call}")
        record = beside.declare(function, returns="SETOF record")
        expected = listed(function, right)
        beside.mismatch(f"SELECT * FROM {record} AS ({expected}, more text)")
        beside.error(f"SELECT {record}")
        beside.mismatch(f"SELECT * FROM {beside.declare(function, returns='SETOF bigint')}")
        beside.error(f"SELECT {beside.declare(function, returns='bigint')}")
        rows(beside.session, f"CREATE TYPE type_{beside.number} AS ({expected}, more text)")
        rows(beside.session, f"ALTER TYPE type_{beside.number} DROP ATTRIBUTE more")
        beside.mismatch(f"SELECT * FROM {beside.declare(function, returns=f'SETOF type_{beside.number}')}")
        same = beside.declare(function, right)
        for statement in (f"SELECT * FROM {same}", f"SELECT {same}", f"SELECT * FROM {record} AS ({expected})"):
            rows(beside.session, statement)
        if function["arguments"]:
            call = beside.declare(function, right, arguments="")
            beside.error(f"SELECT * FROM {call}")


def test_the_same_types_under_other_names(new_cluster):
    """Two columns of one type in another order, or one that is called otherwise: no value appears as another one's."""
    server = create_extension(new_cluster().start())
    beside = Beside(server)
    for function in (function for function in functions(server) if function["columns"]):
        right = function["columns"]
        for names in (["other", *function["names"][1:]], [*function["names"][:-1], "other"]):
            beside.mismatch(f"SELECT * FROM {beside.declare(function, right, names=names)}")
    [host] = [function for function in functions(server) if function["name"] == "hugepage_host"]
    assert set(host["columns"]) == {"text"}
    call = beside.declare(host, host["columns"], names=host["names"][::-1])
    beside.mismatch(f"SELECT * FROM {call}")
    [one, *_] = host["names"]
    beside.mismatch(f"SELECT {one} FROM {call}")


def test_a_plan_from_before_the_columns_changed(new_cluster):
    """A view and a prepared statement stay in the session while the function gets a column more."""
    server = create_extension(new_cluster().start())
    beside = Beside(server)
    [status] = [function for function in functions(server) if function["name"] == "hugepage_status"]
    call = beside.declare(status, status["columns"])
    view = f"CREATE OR REPLACE VIEW mine AS SELECT verdict FROM {call}"
    rows(beside.session, view)
    rows(beside.session, "PREPARE kept AS SELECT * FROM mine")
    rows(beside.session, "SET plan_cache_mode = force_generic_plan")
    assert len(rows(beside.session, "EXECUTE kept")) == 1
    name = call.removesuffix("()")
    rows(server.connect(), f"DROP FUNCTION {call} CASCADE")
    beside.number -= 1
    assert beside.declare(status, [*status["columns"], "text"]) == f"{name}()"
    rows(beside.session, view)
    beside.mismatch("EXECUTE kept")


@pytest.mark.parametrize(("settings", "version", "hint"), [
    ({}, "999.0.0", "Connect again"), (PRELOADED, "999.0.0", "Restart the server"), ({}, "0.0.1", "ALTER EXTENSION"), ({}, None, "CREATE EXTENSION"),
], ids=["loaded", "preloaded", "newer library", "no extension"])
def test_both_versions_and_what_to_do(new_cluster, settings, version, hint):
    server = create_extension(new_cluster(**settings).start())
    beside = Beside(server)
    [status] = [function for function in functions(server) if function["name"] == "hugepage_status"]
    [library] = rows(beside.session, "SELECT hugepage_library_version() AS version")
    call = beside.declare(status, [*status["columns"], "text"])
    if version:
        rows(beside.session, "UPDATE pg_extension SET extversion = %s WHERE extname = %s", version, EXTENSION)
    else:
        rows(beside.session, f"DROP EXTENSION {EXTENSION}")
    error = beside.error(f"SELECT * FROM {call}")
    assert library["version"] in error.diag.message_detail and (version or "no such extension") in error.diag.message_detail
    assert hint in error.diag.message_hint


@pytest.mark.quiet_pools
def test_an_older_extension_gets_the_columns_that_it_knows(new_cluster):
    """What a later version has behind them is left out; other columns are refused as ever."""
    server = create_extension(new_cluster().start())
    beside = Beside(server)
    rows(beside.session, "UPDATE pg_extension SET extversion = '0.0.1' WHERE extname = %s", EXTENSION)
    for function in (function for function in functions(server) if function["columns"]):
        right = function["columns"]
        same = beside.declare(function, right)
        # A function with one column returns no row, and its value has no name.
        for count in {2, len(right) // 2, len(right) - 1} & {*range(2, len(right))}:
            older = beside.declare(function, right[:count])
            whole, part = (rows(beside.session, f"SELECT * FROM {call} LIMIT 1") for call in (same, older))
            assert [list(row) for row in part] == [list(row)[:count] for row in whole], (function["name"], count)
        other = "text" if right[-1] == "bigint" else "bigint"
        for columns in ([*right, "bigint"], [*right[:-1], other], [*right[1:-1], "point"]):
            beside.mismatch(f"SELECT * FROM {beside.declare(function, columns)}")
    assert "ALTER EXTENSION" in beside.error(f"SELECT * FROM {beside.declare(function, [*right, 'bigint'])}").diag.message_hint
