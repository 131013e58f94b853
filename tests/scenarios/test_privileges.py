"""Who may read, and that nothing depends on the caller's search_path or on the schema."""

import itertools
import re
from contextlib import suppress

import psycopg2
import pytest

from harness.cluster import Cluster, rows
from harness.oracle_files import REPOSITORY
from harness.status import EXTENSION, create_extension, steady

# With the pools, of which they compare the numbers.
pytestmark = [pytest.mark.own_servers, pytest.mark.quiet_pools]

MEMBERS = """
SELECT c.oid::regclass::text AS relation, p.oid::regprocedure::text AS routine, p.proname AS name,
       pg_get_function_identity_arguments(p.oid) AS arguments
FROM pg_depend d
LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind IN ('v', 'r')
LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = %s)
"""

VIEWS = ("hugepage_status", "hugepage_pools", "hugepage_segments")


@pytest.fixture
def server(new_cluster) -> Cluster:
    server = create_extension(new_cluster().start())
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    server.sql("CREATE ROLE nobody_special LOGIN")
    return server


def readable(server: Cluster) -> list[str]:
    """Every view of the extension and every function of it that needs no argument, as FROM items."""
    members = server.sql(MEMBERS, EXTENSION)
    relations = [member["relation"] for member in members if member["relation"]]
    functions = [member["routine"] for member in members if member["routine"] and not member["arguments"]]
    assert set(VIEWS) <= set(relations)
    return relations + functions + ["hugepage_segments(true)", "hugepage_preflight()"]


def test_member_of_pg_monitor_reads_all(server):
    session = server.connect(user="watcher")
    for item in readable(server):
        assert rows(session, f"SELECT * FROM {item}") or item not in VIEWS
    [own_row] = rows(session, "SELECT landed_in, verdict, nr_hugepages FROM hugepage_status")
    assert [own_row] == server.sql("SELECT landed_in, verdict, nr_hugepages FROM hugepage_status")


def test_others_are_denied(server):
    session = server.connect(user="nobody_special")
    for item in readable(server):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            rows(session, f"SELECT * FROM {item}")
    open_to_all = server.sql("SELECT routine FROM (" + MEMBERS + ") m WHERE routine IS NOT NULL"
                             " AND has_function_privilege('nobody_special', routine, 'EXECUTE')", EXTENSION)
    assert open_to_all == []


TRAP = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$"
BUILT_IN = {
    "current_setting(text)": "text",
    "current_setting(text, boolean)": "text",
    "pg_backend_pid()": "integer",
    "texteq(text, text)": "boolean",
    "int8eq(bigint, bigint)": "boolean",
}


def test_hostile_search_path(server):
    """Whatever stands earlier in search_path under a name that we or PostgreSQL use, ours is not led astray."""
    session = server.connect()
    clean = {view: rows(session, f"SELECT * FROM public.{view}") for view in VIEWS}
    rows(session, "CREATE SCHEMA hostile")
    for member in rows(session, MEMBERS, EXTENSION):
        if member["routine"]:
            rows(session, f"CREATE FUNCTION hostile.{member['name']}({member['arguments']}) RETURNS bigint {TRAP}")
        elif member["relation"]:
            rows(session, f"CREATE VIEW hostile.{member['relation']} AS SELECT 1 / 0 AS verdict")
    for signature, result in BUILT_IN.items():
        rows(session, f"CREATE FUNCTION hostile.{signature} RETURNS {result} {TRAP}")
    for kind, function in (("text", "texteq"), ("bigint", "int8eq")):
        rows(session, f"CREATE OPERATOR hostile.= (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = hostile.{function})")
    rows(session, "CREATE VIEW hostile.pg_settings AS SELECT 1 / 0 AS setting")
    rows(session, "SET search_path = hostile, pg_catalog, public")
    for trapped in ("SELECT current_setting('port')", "SELECT 'a'::text = 'b'::text", "SELECT hugepage_status()"):
        with pytest.raises(psycopg2.errors.RaiseException):
            rows(session, trapped)
    for view in VIEWS:
        again = rows(session, f"SELECT * FROM public.{view}")
        assert [steady(row) for row in again] == [steady(row) for row in clean[view]]
    assert rows(session, "SELECT * FROM public.hugepage_segments(true)")


def test_overloads_of_a_user(new_cluster):
    """A function of a user beside ours would make our calls ambiguous: in our schema it is named and refused, elsewhere it
    changes nothing. It never runs as the superuser who creates the extension."""
    server = new_cluster().start()
    server.sql("CREATE DATABASE clean")
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="clean")
    functions = {member["name"]: member["arguments"] for member in server.sql(MEMBERS, EXTENSION, dbname="clean") if member["name"]}
    assert len(functions) >= 12
    server.sql("CREATE ROLE mallory LOGIN")
    server.sql("GRANT CREATE ON SCHEMA public TO mallory")
    session, other = server.connect(user="mallory"), server.connect()
    for name, arguments in functions.items():
        overload = f"{name}({arguments + ', ' if arguments else ''}a int DEFAULT 1)".replace("needed text", "needed text DEFAULT ''")
        overload = overload.replace("shared_buffers text", "shared_buffers text DEFAULT ''").replace(
            "max_connections integer", "max_connections integer DEFAULT 1").replace(
            "huge_page_size text", "huge_page_size text DEFAULT ''").replace(
            "measure_resident boolean", "measure_resident boolean DEFAULT false")
        for schema in ("pg_temp", "public"):
            rows(session, f"CREATE FUNCTION {schema}.{overload} RETURNS bigint {TRAP}")
        with pytest.raises(psycopg2.errors.DuplicateFunction if name != "hugepage_library_version" else
                           psycopg2.errors.AmbiguousFunction) as refused:
            rows(other, f"CREATE EXTENSION {EXTENSION}")
        assert name in str(refused.value)
        if name != "hugepage_library_version":
            assert f"{name}(" in str(refused.value) and "another schema" in refused.value.diag.message_hint
        rows(session, f"DROP FUNCTION public.{name}")
    # Later ones leave the views as they are.
    rows(other, f"CREATE EXTENSION {EXTENSION}")
    rows(session, f"CREATE FUNCTION public.hugepage_status(a int DEFAULT 1) RETURNS bigint {TRAP}")
    assert rows(other, "SELECT verdict FROM hugepage_status")
    rows(other, f"DROP EXTENSION {EXTENSION}")
    rows(other, "CREATE SCHEMA ours")
    rows(other, f"CREATE EXTENSION {EXTENSION} SCHEMA ours")
    assert rows(other, "SELECT verdict FROM ours.hugepage_status")


DOCUMENTED = re.compile(r"hugepage_[a-z_]+\((?:'[^()]*|true|)\)")
"""A call that a user is told to make, without the columns of a result."""


def documented() -> list[str]:
    files = [REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("monitoring/**/*.y*ml")]
    return sorted({call for file in files for call in DOCUMENTED.findall(file.read_text())})


def overloads(name: str, arguments: str) -> list[str]:
    """Functions of this name that take the same arguments, or some, by other types, with more, by default, or any number."""
    own = [argument.split(" ", 1) for argument in arguments.split(", ") if argument]
    lists = [list(some) for count in range(len(own) + 1) for some in itertools.combinations(own, count)]
    lists += [[(argument, {"text": other}.get(kind, kind)) for argument, kind in some] for some in lists for other in ("varchar", "word")]
    texts = [", ".join(" ".join(argument) for argument in some) for some in lists]
    texts += [f"{text}, more integer DEFAULT 1".removeprefix(", ") for text in texts]
    texts += ["any_value anyelement", "VARIADIC many text[]", "VARIADIC many boolean[]", "VARIADIC many integer[]"]
    return [f"{name}({text})" for text in dict.fromkeys(texts)]


def owner_of_called(session, call: str) -> str:
    """Who owns the function that a call is of; it is not run."""
    rows(session, f"CREATE TEMP VIEW called AS SELECT * FROM {call} AS made")
    [found] = rows(session, "SELECT p.proowner::regrole::text AS owner FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid "
                            "JOIN pg_proc p ON d.refclassid = 'pg_proc'::regclass AND p.oid = d.refobjid WHERE r.ev_class = 'called'::regclass")
    rows(session, "DROP VIEW called")
    return found["owner"]


@pytest.mark.parametrize(("schema", "path", "is_safe"), [("public", "public, theirs", True), ("theirs", "public, theirs", True),
                                                         ("theirs", "theirs, public", False)])
def test_overloads_beside_a_documented_call(server, schema, path, is_safe):
    """T12: who may create functions in the extension's schema, or in a later one, gets at most an error out of a superuser's call.
    In an earlier one it gets the call."""
    server.sql("CREATE ROLE mallory LOGIN")
    server.sql("GRANT CREATE ON SCHEMA public TO mallory")
    server.sql("CREATE SCHEMA theirs AUTHORIZATION mallory")
    session, other = server.connect(user="mallory"), server.connect()
    rows(session, "CREATE DOMAIN public.word AS text")
    rows(other, f"SET search_path = {path}")
    calls, taken, kept = documented(), set(), set()
    assert {"hugepage_preflight('64GB', huge_page_size => '1GB')", "hugepage_segments(true)", "hugepage_library_version()"} <= set(calls)
    for member in (member for member in server.sql(MEMBERS, EXTENSION) if member["name"]):
        for overload in overloads(member["name"], member["arguments"]):
            try:
                rows(session, f"CREATE FUNCTION {schema}.{overload} RETURNS bigint {TRAP}")
            except psycopg2.errors.DuplicateFunction:
                continue
            for call in calls:
                if call.startswith(f"{member['name']}("):
                    with suppress(psycopg2.errors.AmbiguousFunction):
                        (taken if owner_of_called(other, call) == "mallory" else kept).add(call)
            signature = overload.replace(" DEFAULT 1", "")
            rows(session, f"DROP FUNCTION {schema}.{signature}")
    assert kept == set(calls) and (not taken if is_safe else taken == set(calls)), (taken, kept)


def test_another_schema(new_cluster):
    server = new_cluster().start()
    server.sql('CREATE SCHEMA "Odd Schema"')
    server.sql(f'CREATE EXTENSION {EXTENSION} SCHEMA "Odd Schema"')
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    server.sql('GRANT USAGE ON SCHEMA "Odd Schema" TO watcher')
    for schema in ("Odd Schema", "moved"):
        if schema == "moved":
            server.sql("CREATE SCHEMA moved")
            server.sql(f"ALTER EXTENSION {EXTENSION} SET SCHEMA moved")
            server.sql("GRANT USAGE ON SCHEMA moved TO watcher")
        session = server.connect(user="watcher")
        rows(session, "SET search_path = ''")
        for item in (*VIEWS, "hugepage_segments(true)"):
            assert rows(session, f'SELECT * FROM "{schema}".{item}')
    assert not server.sql("SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'v'")


def test_template_database(new_cluster):
    server = new_cluster().start()
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="template1")
    server.sql("CREATE DATABASE made_from_it")
    [row] = server.sql("SELECT landed_in, verdict FROM hugepage_status", dbname="made_from_it")
    assert row["landed_in"] in ("hugetlb", "base", "thp", "partial thp")


def test_drop_and_create_again(server):
    server.sql(f"DROP EXTENSION {EXTENSION}")
    create_extension(server)
    assert server.sql("SELECT verdict FROM hugepage_status")
