"""The history costs the same memory and descriptors however long its file or a line of it is."""

import zlib
from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest

from harness.background_statement import BackgroundStatement
from harness.cluster import SUPERUSER, Cluster, rows
from harness.kernel import open_files
from harness.overcommit import strict_overcommit
from harness.preloaded import PRELOADED, await_worker
from harness.processes import run, status_bytes
from harness.server_log import messages
from harness.status import create_extension
from harness.units import GB, KB, MB

pytestmark = pytest.mark.own_servers

RECORDS = 100_000
"""The most that `pg_hugepages.history_size` keeps."""

SLACK = 4 * MB
"""By how much two runs of one process may differ."""


def long_line(line: bytes) -> tuple[bytes, int]:
    return line[:-2] + b"x" * 100 * MB + line[-2:] + line, 1


def many_records(line: bytes) -> tuple[bytes, int]:
    return line * (RECORDS - 1), RECORDS - 1


def cluster(new_cluster) -> Cluster:
    server = new_cluster(**PRELOADED, huge_pages=False, autovacuum=False, **{"pg_hugepages.history_size": RECORDS})
    create_extension(server.start())
    await_worker(server)
    return server


def kept(server: Cluster) -> Path:
    return server.data / "pg_hugepages.history"


@pytest.mark.any_major
@pytest.mark.parametrize("content", [long_line, many_records])
def test_memory_is_that_of_a_short_history(new_cluster, content: Callable[[bytes], tuple[bytes, int]]):
    """What a process had at most, resident and mapped: the postmaster, the worker, and a session."""
    server = cluster(new_cluster)

    def peaks(records: int) -> dict[tuple[str, str], int]:
        with server.connect() as session:
            rows(session, "SELECT set_config('work_mem', '64kB', false)")
            found, = rows(session, "SELECT count(*), count(recorded_at) AS dated FROM hugepage_history")
            assert found == {"count": records, "dated": records}
            pids = {"postmaster": server.postmaster, "worker": await_worker(server), "session": session.info.backend_pid}
            return {(process, field): status_bytes(pid, field) for process, pid in pids.items() for field in ("VmHWM", "VmPeak")}

    short = peaks(1)
    server.stop()
    bytes_, records = content(kept(server).read_bytes())
    kept(server).write_bytes(bytes_)
    server.start()
    await_worker(server)
    more = {key: size - short[key] for key, size in peaks(records + 1).items()}
    assert all(size < SLACK for size in more.values()), more
    # The worker has dropped the line.
    assert kept(server).stat().st_size < 100 * MB


@pytest.mark.whole_host
@pytest.mark.any_major
def test_a_long_history_under_strict_overcommit(new_cluster, root):
    """The kernel promises five times the file: the start is logged and recorded, and the view has its rows."""
    server = cluster(new_cluster)
    server.stop()
    json = kept(server).read_bytes()[9:-1].replace(b'"detail":null', b'"detail":"%s"' % (b"x" * 1300))
    kept(server).write_bytes(b"%08x %s\n" % (zlib.crc32(json), json) * (RECORDS - 1))
    at = len(server.log())
    with strict_overcommit() as leave:
        # Again and again, because other processes of the host take from it.
        leave(GB)
        server.start()
        leave(GB)
        await_worker(server)
        leave(GB)
        assert server.sql("SELECT count(*) FROM hugepage_history") == [{"count": RECORDS}]
        server.stop()
    assert [message.text for message in messages(server.log()[at:])] == [
        "shared memory landed in 4 kB pages, as requested by huge_pages = off"]


def test_address_space_runs_out_in_a_long_history(new_cluster, root):
    """What a call has as a reserve is enough for any number of records, or it gets an error of the server."""
    server = cluster(new_cluster)
    kept(server).write_bytes(kept(server).read_bytes() * 20_000)
    bystander = server.connect()
    codes = []
    for room in [0, *(128 * KB * step for step in range(1, 8)), *(MB * step for step in range(1, 12)), 16 * MB, 32 * MB]:
        with server.connect() as session:
            rows(session, "SELECT set_config('work_mem', '64kB', false)")
            pid = session.info.backend_pid
            run("runuser", "-u", SUPERUSER, "--", "prlimit", f"--pid={pid}", f"--as={status_bytes(pid, 'VmSize') + room}")
            try:
                assert rows(session, "SELECT count(*) FROM hugepage_history") == [{"count": 20_000}]
                codes.append(None)
            except psycopg2.Error as error:
                codes.append(error.pgcode)
        assert rows(bystander, "SELECT 1 AS alive") == [{"alive": 1}], room
    assert set(codes) == {"53200", None}, codes


@pytest.mark.any_major
@pytest.mark.parametrize("line", [b"\n", b"{}\n"], ids=["empty", "damaged"])
def test_a_cancel_among_lines_without_a_record(new_cluster, line):
    """The worker drops them at its next start."""
    server = cluster(new_cluster)
    with open(kept(server), "ab") as file:
        file.write(line * (200 * MB // len(line)))
    looks = BackgroundStatement(server, "SELECT count(*) FROM hugepage_history", "SET statement_timeout = '100ms'")
    assert isinstance(looks.end(1.5), psycopg2.errors.QueryCanceled)


def test_a_cursor_holds_no_descriptor(new_cluster):
    """The server does not know of a descriptor that a row's function holds, and may run out of them."""
    server = cluster(new_cluster)
    server.restart()
    await_worker(server)
    with server.connect() as session:
        def of_history() -> list[str]:
            return [path for path in open_files(session.info.backend_pid) if "pg_hugepages.history" in path]

        rows(session, "BEGIN")
        for number in range(20):
            rows(session, f"DECLARE c{number} CURSOR FOR SELECT hugepage_history()")
            assert len(rows(session, f"FETCH c{number}")) == 1
        assert of_history() == []
        assert all(len(rows(session, f"FETCH ALL FROM c{number}")) == 1 for number in range(20))
        rows(session, "COMMIT")
