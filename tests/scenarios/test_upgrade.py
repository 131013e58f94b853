"""Versions of the extension: updates, dumps, pg_upgrade, and a library that does not fit the script."""

from pathlib import Path

import psycopg2
import pytest

from harness.catalog import members, read_everything
from harness.cluster import Cluster, Install
from harness.processes import CommandFailed
from harness.status import EXTENSION

REPOSITORY = Path(__file__).parents[2]


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
