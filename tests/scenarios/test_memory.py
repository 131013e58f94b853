"""A session without memory gets an error of PostgreSQL, and the server goes on: no view and no function ends a backend."""

import psycopg2
import pytest

from harness.cluster import SUPERUSER, rows
from harness.preloaded import PRELOADED
from harness.processes import run, status_bytes
from harness.status import create_extension
from harness.units import KB, MB

pytestmark = pytest.mark.own_servers

VIEWS = """SELECT 'SELECT * FROM ' || oid::regclass AS statement FROM pg_class
           WHERE relkind = 'v' AND relname LIKE 'hugepage%' ORDER BY 1"""
CALLS = ["SELECT * FROM hugepage_preflight()", "SELECT * FROM hugepage_preflight(max_connections => 50)",
         "SELECT * FROM hugepage_segments(true)", "SELECT hugepage_library_version()"]
ROOMS = [0, *(128 * KB * step for step in range(1, 4)), *(MB * step // 2 for step in (1, 2, 3)), *(MB * step for step in range(2, 12)), 16 * MB, 32 * MB]


@pytest.fixture(params=[{}, PRELOADED], ids=["loaded", "preloaded"])
def server(new_cluster, request):
    server = create_extension(new_cluster(autovacuum=False, **request.param).start())
    # A history, and a configuration that has to be asked about.
    server.conf(shared_buffers="140MB")
    return server


class Survival:
    """Runs statements in short sessions, beside one that the end of any backend would end."""

    def __init__(self, server) -> None:
        self.server = server
        self.bystander = server.connect()
        self.statements = [row["statement"] for row in rows(self.bystander, VIEWS)] + CALLS
        assert len(self.statements) >= 14
        self.codes: list[str | None] = []

    def run(self, session, statement: str, room: int) -> None:
        try:
            rows(session, statement)
            self.codes.append(None)
        except psycopg2.Error as error:
            code = error.pgcode
            assert code and (code.startswith("53") or code in ("XX000", "58P01")), (statement, room, error)
            self.codes.append(code)
        assert rows(self.bystander, "SELECT 1 AS alive") == [{"alive": 1}], (statement, room)


@pytest.mark.parametrize("warm", [False, pytest.param(True, marks=[pytest.mark.any_major, pytest.mark.long])], ids=["first call", "second call"])
def test_address_space_runs_out(server, root, warm):
    """Each statement in each of the rooms has a session of its own."""
    survival = Survival(server)
    for statement in survival.statements:
        for room in ROOMS:
            session = server.connect()
            if warm:
                rows(session, statement)
            backend = session.info.backend_pid
            # As the owner, who needs no capability for it.
            run("runuser", "-u", SUPERUSER, "--", "prlimit", f"--pid={backend}",
                f"--as={status_bytes(backend, 'VmSize') + room}")
            survival.run(session, statement, room)
            session.close()
    assert "53200" in survival.codes and None in survival.codes
    assert "PANIC" not in server.log() and "terminated by signal" not in server.log()
