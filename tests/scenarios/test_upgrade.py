"""Versions of the extension: updates, dumps, pg_upgrade, and a library that does not fit the script."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.catalog import members, read_everything
from harness.cluster import Cluster, Install, rows
from harness.own_programs import own_packages
from harness.processes import CommandFailed
from harness.status import EXTENSION

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

import build

NEXT = "999.0.0"
LIBRARY_OF_NEXT = f"""
#include "postgres.h"
#include "fmgr.h"
#include "utils/builtins.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(hugepage_library_version_wrapper);
Datum hugepage_library_version_wrapper(PG_FUNCTION_ARGS) {{ PG_RETURN_TEXT_P(cstring_to_text("{NEXT}")); }}
PG_FUNCTION_INFO_V1(hugepage_status_wrapper);
Datum hugepage_status_wrapper(PG_FUNCTION_ARGS) {{ elog(ERROR, "of the next version"); }}
PG_FUNCTION_INFO_V1(hugepage_status_{NEXT[:3]});
Datum hugepage_status_{NEXT[:3]}(PG_FUNCTION_ARGS) {{ elog(ERROR, "of the next version"); }}
"""
"""As much of the next library as the script of its version needs."""


def versions(server: Cluster) -> list[str]:
    """The versions that can be created here, the oldest first."""
    found = server.sql("SELECT version FROM pg_available_extension_versions WHERE name = %s", EXTENSION)
    return sorted((row["version"] for row in found), key=lambda version: [int(part) for part in version.split(".")])


def newest(server: Cluster) -> str:
    return server.sql("SELECT default_version FROM pg_available_extensions WHERE name = %s",
                      EXTENSION)[0]["default_version"]


def test_every_version_works_and_updates_to_the_newest(new_cluster):
    """Created at any version, the extension answers with today's library, and updates to what CREATE makes now."""
    server = new_cluster().start()
    server.sql("CREATE DATABASE fresh")
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="fresh")
    expected, target = members(server, "fresh"), newest(server)
    assert versions(server)[-1] == target
    for version in versions(server):
        dbname = f"from {version}"
        server.sql(f'CREATE DATABASE "{dbname}"')
        server.sql(f"CREATE EXTENSION {EXTENSION} VERSION '{version}'", dbname=dbname)
        read_everything(server, dbname)
        server.sql(f"ALTER EXTENSION {EXTENSION} UPDATE", dbname=dbname)
        assert server.sql("SELECT extversion FROM pg_extension WHERE extname = %s", EXTENSION,
                          dbname=dbname) == [{"extversion": target}]
        assert members(server, dbname) == expected


def test_released_scripts_stay_as_they_were(new_cluster):
    """sql/ has a frozen script of each release but the one in the making, and an update from each."""
    server = new_cluster().start()
    frozen = {path.stem.split("--")[1] for path in (REPOSITORY / "sql").glob(f"{EXTENSION}--*.sql")
              if path.stem.count("--") == 1}
    assert set(versions(server)) == frozen | {newest(server)}
    paths = server.sql("SELECT source, path FROM pg_extension_update_paths(%s) WHERE target = %s AND source <> target",
                       EXTENSION, newest(server))
    assert {path["source"] for path in paths if path["path"]} == frozen - {newest(server)}
    for path in (REPOSITORY / "sql").glob(f"{EXTENSION}--*--*.sql"):
        assert "SELECT hugepage_library_version(needed =>" in path.read_text(), f"{path} does not ask for its library"


def test_library_older_than_the_script(new_cluster):
    """As after an update of the package before the restart: a clear error, and a server that goes on."""
    server = new_cluster().start()
    server.sql(f"CREATE EXTENSION {EXTENSION}")
    for needed in ("999.0.0", f"{newest(server)}.1"):
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as error:
            server.sql("SELECT hugepage_library_version(needed => %s)", needed)
        assert f"version {needed} of pg_hugepages needs a newer library" in error.value.diag.message_primary
        assert "Restart the server" in error.value.diag.message_hint
    assert server.sql("SELECT hugepage_library_version(needed => '0.0.9') AS version") == [{"version": newest(server)}]
    assert server.sql("SELECT count(*) FROM hugepage_status") == [{"count": 1}]


@pytest.fixture
def packages() -> Iterator[Install]:
    """This PostgreSQL, with packages that may be replaced. Ask for it before the servers, which are stopped with its programs."""
    root = Path(tempfile.mkdtemp(prefix="pg_hugepages-packages-"))
    try:
        root.chmod(0o755)
        yield own_packages(Install.find(), root)
    finally:
        shutil.rmtree(root)


def update_package(install: Install, version: str, symbol: str) -> None:
    """What the package of the next version installs: hugepage_status has a column more, under this symbol."""
    library = Path(install.ask("pkglibdir"), f"{EXTENSION}.so")
    source = library.with_suffix(".c")
    source.write_text(LIBRARY_OF_NEXT)
    library.unlink()
    build.compile_c("-fPIC", "-shared", f"-I{Install.find().ask('includedir-server')}", "-o", library, source)
    scripts = Path(install.ask("sharedir"), "extension")
    script = (scripts / f"{EXTENSION}--{version}.sql").read_text()
    start = script.index("CREATE FUNCTION hugepage_status()")
    create = script[start:script.index(";", start)]
    assert "crash_outlook text\n)" in create and "hugepage_status_wrapper" in create
    create = create.replace("crash_outlook text\n)", "crash_outlook text, more text\n)").replace("hugepage_status_wrapper", symbol)
    (scripts / f"{EXTENSION}--{version}--{NEXT}.sql").write_text(f"""
        SELECT hugepage_library_version(needed => extversion) FROM pg_extension WHERE extname = '{EXTENSION}';
        DROP VIEW hugepage_status;
        DROP FUNCTION hugepage_status();
        {create};
        CREATE VIEW hugepage_status AS SELECT * FROM hugepage_status();
    """)


@pytest.mark.parametrize("symbol", [f"hugepage_status_{NEXT[:3]}", "hugepage_status_wrapper"], ids=["new symbol", "same symbol"])
def test_a_session_of_before_the_update(packages, new_cluster, symbol):
    """Its library stays the old one. It gets errors where the columns have changed, and answers elsewhere."""
    server = new_cluster(install=packages).start()
    server.sql(f"CREATE EXTENSION {EXTENSION}")
    version, session = newest(server), server.connect()
    rows(session, "PREPARE kept AS SELECT * FROM hugepage_status")
    assert len(rows(session, "EXECUTE kept")) == 1
    update_package(packages, version, symbol)
    server.sql(f"ALTER EXTENSION {EXTENSION} UPDATE TO '{NEXT}'")
    for statement in ("EXECUTE kept", "SELECT * FROM hugepage_status", "SELECT hugepage_status()"):
        with pytest.raises(psycopg2.Error) as error:
            rows(session, statement)
        if symbol == "hugepage_status_wrapper":
            detail = error.value.diag.message_detail or ""
            assert "EXECUTE" in statement or (version in detail and NEXT in detail and "Connect again" in error.value.diag.message_hint)
        else:
            assert "EXECUTE" in statement or isinstance(error.value, psycopg2.errors.UndefinedFunction)
    assert rows(session, "SELECT hugepage_library_version() AS version") == [{"version": version}]
    assert rows(session, "SELECT * FROM hugepage_pools")
    with pytest.raises(psycopg2.errors.InternalError_, match="of the next version"):
        server.sql("SELECT * FROM hugepage_status")


def test_dump_and_restore(new_cluster):
    """The extension, its place and what its owner granted survive; its views are not dumped as such."""
    server = new_cluster().start()
    server.sql("CREATE ROLE auditor LOGIN")
    for statement in ("CREATE DATABASE original", "CREATE DATABASE restored"):
        server.sql(statement)
    for statement in ("CREATE SCHEMA monitoring", f"CREATE EXTENSION {EXTENSION} SCHEMA monitoring",
                      "GRANT USAGE ON SCHEMA monitoring TO auditor",
                      "GRANT SELECT ON monitoring.hugepage_status TO auditor",
                      "GRANT EXECUTE ON FUNCTION monitoring.hugepage_status TO auditor",
                      "CREATE VIEW mine AS SELECT verdict, message FROM monitoring.hugepage_status"):
        server.sql(statement, dbname="original")
    dump = server.root / "dump"
    server.command("pg_dump", "-h", server.root, "-U", "postgres", "-Fc", "-f", dump, "original")
    server.command("pg_restore", "-h", server.root, "-U", "postgres", "-e", "-d", "restored", dump)
    assert members(server, "restored") == members(server, "original")
    assert len(server.sql("SELECT * FROM mine", dbname="restored")) == 1
    assert len(server.sql("SELECT * FROM monitoring.hugepage_status", dbname="restored", user="auditor")) == 1
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        server.sql("SELECT * FROM monitoring.hugepage_backends", dbname="restored", user="auditor")


@pytest.mark.parametrize("preloaded", [False, True])
def test_pg_upgrade(new_cluster, preloaded):
    """From the oldest major here that has the extension; where there is no other, from this one to itself."""
    here = Install.find()
    older = min((install for install in Install.all()
                 if install.major < here.major and install.has_extension(EXTENSION)),
                key=lambda install: install.major, default=here)
    settings = {"shared_preload_libraries": EXTENSION} if preloaded else {}
    old, new = new_cluster(install=older, **settings), new_cluster(install=here, **settings)
    old.start()
    old.sql(f"CREATE EXTENSION {EXTENSION}")
    old.sql("CREATE VIEW mine AS SELECT verdict FROM hugepage_status")
    old.stop()
    try:
        new.command("pg_upgrade", "-b", older.bindir, "-B", here.bindir, "-d", old.data, "-D", new.data,
                    "-U", "postgres", "-s", new.root, cwd=new.root)
    except CommandFailed as error:
        logs = "\n".join(log.read_text()[-2000:] for log in new.data.glob("pg_upgrade_output.d/*/log/*.log"))
        raise AssertionError(f"{error}\n{logs}") from None
    new.start()
    new.sql("CREATE DATABASE fresh TEMPLATE template0")
    new.sql(f"CREATE EXTENSION {EXTENSION}", dbname="fresh")
    assert members(new, "postgres") == members(new, "fresh")
    assert len(new.sql("SELECT * FROM mine")) == 1
    assert (new.sql("SELECT generation FROM hugepage_status")[0]["generation"] is not None) == preloaded
