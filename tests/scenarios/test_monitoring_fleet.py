"""Many servers in one view, without Prometheus."""

import psycopg2
import pytest

from harness.cluster import Cluster, rows
from harness.prometheus import MONITORING
from harness.status import EXTENSION, create_extension
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

FLEET = MONITORING / "fleet/fleet.sql"


def psql(server: Cluster, *arguments: str) -> str:
    """psql as the superuser."""
    return server.command("psql", "-X", "-q", "-h", str(server.root), "-U", "postgres", "-d", "postgres", *arguments)


def test_three_clusters(new_cluster, pool):
    """Each row is what that server says itself; one that is down, or has no extension, is a row with the reason."""
    huge, base, other_schema = new_cluster(), new_cluster(shared_buffers="64MB"), new_cluster(shared_buffers="16MB")
    pool(2 * MB, huge.pages_needed(2 * MB))
    for server in (huge, base):
        create_extension(server.start())
    other_schema.start().sql('CREATE SCHEMA "Odd Schema"')
    other_schema.sql(f'CREATE EXTENSION {EXTENSION} SCHEMA "Odd Schema"')
    for server in (huge, base, other_schema):
        server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    other_schema.sql('GRANT USAGE ON SCHEMA "Odd Schema" TO monitor')

    # The server's user must be able to read the script.
    script = huge.root / "fleet.sql"
    script.write_text(FLEET.read_text())
    for _again in range(2):
        psql(huge, "-f", str(script))
    huge.sql("SELECT hugepage_fleet.add('the \"huge\" one', host => %s)", str(huge.root))
    huge.sql("SELECT hugepage_fleet.add('base', host => %s)", "/nowhere")
    huge.sql("SELECT hugepage_fleet.add('base', host => %s, port => 5432)", str(base.root))
    huge.sql("SELECT hugepage_fleet.add('odd', host => %s, schema => 'Odd Schema')", str(other_schema.root))

    session = huge.connect(user="monitor")
    fleet = {row["server"]: row for row in rows(session, "SELECT * FROM hugepage_fleet.status")}
    assert fleet.keys() == {'the "huge" one', "base", "odd"}
    for server, name, view in ((huge, 'the "huge" one', "hugepage_status"), (base, "base", "hugepage_status"),
                               (other_schema, "odd", '"Odd Schema".hugepage_status')):
        [own] = server.sql(f"SELECT * FROM {view}")
        columns = fleet[name].keys() - {"server", "error", "page_tables_host"}
        assert {column: fleet[name][column] for column in columns} == {column: own[column] for column in columns}
        assert fleet[name]["error"] is None and fleet[name]["page_tables_host"] > 0
    assert fleet['the "huge" one']["landed_in"] == "hugetlb"

    other_schema.stop()
    base.sql(f"DROP EXTENSION {EXTENSION}")
    fleet = rows(huge.connect(user="monitor"), "SELECT * FROM hugepage_fleet.status")
    assert [(row["server"], row["verdict"]) for row in fleet] == [("base", None), ("odd", None), ('the "huge" one', "ok")]
    assert "does not exist" in fleet[0]["error"] and "could not connect" in fleet[1]["error"]
    assert "No such file or directory" in fleet[1]["error"], "the reason, which PostgreSQL has as a detail"
    huge.sql("SELECT hugepage_fleet.remove('odd')")
    assert len(huge.sql("SELECT server FROM hugepage_fleet.status")) == 2


def test_closed_to_others(new_cluster):
    server = create_extension(new_cluster().start())
    server.sql("CREATE ROLE nobody_special LOGIN")
    server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    script = server.root / "fleet.sql"
    script.write_text(FLEET.read_text())
    psql(server, "-f", str(script))
    session = server.connect(user="nobody_special")
    for statement in ("SELECT * FROM hugepage_fleet.status", "SELECT hugepage_fleet.remove('x')"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            rows(session, statement)
    # Whoever may look may not add.
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        rows(server.connect(user="monitor"), "SELECT hugepage_fleet.add('x', host => 'y')")
