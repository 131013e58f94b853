"""Versions of the extension: updates, dumps, pg_upgrade, and a library that does not fit the script."""

import hashlib
import re
import shutil
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import psycopg2
import pytest

from harness.catalog import members, read_everything, sources
from harness.cluster import Cluster, Install, rows
from harness.processes import CommandFailed
from harness.status import EXTENSION

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "bench"))

import build

pytestmark = pytest.mark.own_servers

EARLIER, NEXT = "0.0.8", "999.0.0"
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


RELEASED = [line.split("--")[1].removesuffix(".sql") for line in (REPOSITORY / "sql/released.sha256").read_text().splitlines()
            if line.count("--") == 1]
"""Versions of scripts that never change again, the oldest first."""


def newest(server: Cluster) -> str:
    return server.sql("SELECT default_version FROM pg_available_extensions WHERE name = %s",
                      EXTENSION)[0]["default_version"]


def library_of(script: str, directory: Path) -> Path:
    """A library with which a script can be run. Of its functions only that which tells the version answers."""
    source, library = directory / "old.c", directory / "old.so"
    symbols = sorted({*re.findall(r"'(hugepage_\w+_wrapper)'", script)} - {"hugepage_library_version_wrapper"})
    source.write_text(f"""
        #include "postgres.h"
        #include "fmgr.h"
        #include "utils/builtins.h"
        PG_MODULE_MAGIC;
        PG_FUNCTION_INFO_V1(hugepage_library_version_wrapper);
        Datum hugepage_library_version_wrapper(PG_FUNCTION_ARGS) {{ PG_RETURN_TEXT_P(cstring_to_text("{NEXT}")); }}
    """ + "".join(f"PG_FUNCTION_INFO_V1({symbol});\nDatum {symbol}(PG_FUNCTION_ARGS) {{ PG_RETURN_NULL(); }}\n" for symbol in symbols))
    build.compile_c("-fPIC", "-shared", f"-I{Install.find().ask('includedir-server')}", "-o", library, source)
    return library


def declaration(script: str) -> str:
    """How a script declares the function hugepage_status."""
    start = script.index("CREATE FUNCTION hugepage_status()")
    return script[start:script.index(";\n", start)]


def with_earlier(directory: Path) -> dict[str, str]:
    """The scripts as `./dev sql` writes them where a version was released that has today's columns but the last one of
    hugepage_status."""
    loader = SourceFileLoader("scripts_sql", str(REPOSITORY / "scripts/sql"))
    sql = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(sql)
    directory.mkdir()
    columns = "crates/hugepage-assess/columns.txt"
    for name in ("Cargo.toml", "src", "sql", columns):
        source, target = REPOSITORY / name, directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    sql.ROOT = directory
    today = (directory / columns).read_text()
    last = re.search(r"\n(?!\n)[^\n]+(?=\n\n\[pools\])", today)
    (directory / columns).write_text(today.replace(last[0], "", 1))
    script = sql.scripts()[f"{EXTENSION}--{sql.version()}.sql"]
    (directory / columns).write_text(today)
    name = f"{EXTENSION}--{EARLIER}.sql"
    (directory / "sql" / name).write_text(script)
    with open(directory / "sql/released.sha256", "a") as released:
        released.write(f"{hashlib.sha256(script.encode()).hexdigest()}  {name}\n")
    return {name: script, **sql.scripts()}


def created_at(version: str, packages: Install, server: Cluster, directory: Path) -> Cluster:
    """A server whose extension was created with the package of that version, before today's was installed."""
    scripts = with_earlier(directory / "repository") if version == EARLIER else {}
    for name, text in scripts.items():
        path = Path(packages.ask("sharedir"), "extension", name)
        path.unlink(missing_ok=True)
        path.write_text(text)
    script = Path(packages.ask("sharedir"), f"extension/{EXTENSION}--{version}.sql").read_text()
    library = Path(packages.ask("pkglibdir"), f"{EXTENSION}.so")
    today = library.resolve()
    library.unlink()
    shutil.copy(library_of(script, directory), library)
    server.start()
    server.sql(f"CREATE EXTENSION {EXTENSION} VERSION '{version}'")
    server.stop()
    library.unlink()
    library.symlink_to(today)
    return server.start()


@pytest.mark.parametrize("version", [EARLIER, *RELEASED])
def test_a_released_version_is_served_and_updated(packages, new_cluster, tmp_path, version):
    """Asked with today's library, and updated to what CREATE EXTENSION makes now."""
    server = created_at(version, packages, new_cluster(install=packages), tmp_path)
    for source in sources(server, "postgres"):
        server.sql(f"SELECT * FROM {source}")
    server.sql("CREATE DATABASE fresh")
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="fresh")
    server.sql(f"ALTER EXTENSION {EXTENSION} UPDATE")
    assert server.sql("SELECT extversion FROM pg_extension WHERE extname = %s", EXTENSION) == [{"extversion": newest(server)}]
    assert members(server, "postgres") == members(server, "fresh")
    read_everything(server, "postgres")


def test_an_update_keeps_privileges_and_views(packages, new_cluster, tmp_path):
    """Also through a dump that is made afterwards, as what a script of an extension grants is in none."""
    server = created_at(EARLIER, packages, new_cluster(install=packages), tmp_path)
    server.sql("CREATE ROLE auditor LOGIN")
    for statement in ("GRANT SELECT ON hugepage_status TO auditor", "GRANT EXECUTE ON FUNCTION hugepage_status TO auditor",
                      "CREATE VIEW mine AS SELECT verdict FROM hugepage_status",
                      "CREATE VIEW of_function AS SELECT * FROM hugepage_status()"):
        server.sql(statement)
    before = server.sql("SELECT * FROM of_function")
    server.sql(f"ALTER EXTENSION {EXTENSION} UPDATE")
    [row] = server.sql("SELECT * FROM hugepage_status", user="auditor")
    assert list(row)[:-1] == list(before[0]) == list(server.sql("SELECT * FROM of_function")[0])
    assert server.sql("SELECT * FROM mine") == [{"verdict": row["verdict"]}]
    dump = server.root / "dump"
    server.command("pg_dump", "-h", server.root, "-U", "postgres", "-Fc", "-f", dump, "postgres")
    server.sql("CREATE DATABASE restored")
    server.command("pg_restore", "-h", server.root, "-U", "postgres", "-e", "-d", "restored", dump)
    assert members(server, "restored") == members(server, "postgres")
    for source in ("hugepage_status", "mine", "of_function"):
        assert len(server.sql(f"SELECT * FROM {source}", dbname="restored")) == 1
    assert len(server.sql("SELECT * FROM hugepage_status", dbname="restored", user="auditor")) == 1


def test_only_the_newest_version_can_be_created(new_cluster):
    """From each released version a path of updates leads to it."""
    server = new_cluster().start()
    created = server.sql("SELECT version FROM pg_available_extension_versions WHERE name = %s", EXTENSION)
    assert created == [{"version": newest(server)}]
    paths = server.sql("SELECT source FROM pg_extension_update_paths(%s) WHERE target = %s AND path IS NOT NULL",
                       EXTENSION, newest(server))
    assert {path["source"] for path in paths} == {*RELEASED} - {newest(server)}


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


def update_package(install: Install, version: str, symbol: str) -> None:
    """What the package of the next version installs: hugepage_status has a column more, under this symbol."""
    library = Path(install.ask("pkglibdir"), f"{EXTENSION}.so")
    source = library.with_suffix(".c")
    source.write_text(LIBRARY_OF_NEXT)
    library.unlink()
    build.compile_c("-fPIC", "-shared", f"-I{Install.find().ask('includedir-server')}", "-o", library, source)
    scripts = Path(install.ask("sharedir"), "extension")
    script = (scripts / f"{EXTENSION}--{version}.sql").read_text()
    create = declaration(script).replace("CREATE", "CREATE OR REPLACE")
    assert "hugepage_status_wrapper" in create
    create = create.replace("hugepage_status_wrapper", symbol)
    (scripts / f"{EXTENSION}--{version}--{NEXT}.sql").write_text(f"""
        SELECT hugepage_library_version(needed => extversion) FROM pg_extension WHERE extname = '{EXTENSION}';
        ALTER TYPE hugepage_status_row ADD ATTRIBUTE more text;
        {create};
        CREATE OR REPLACE VIEW hugepage_status AS SELECT * FROM hugepage_status();
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
