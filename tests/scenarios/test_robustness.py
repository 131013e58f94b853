"""Called ten thousand times, interrupted, and without PROCMAP_QUERY."""

import psycopg2
import pytest

from harness.cluster import rows
from harness.kernel import has_procmap_query, kernel_files, open_files
from harness.preloaded import PRELOADED
from harness.processes import status_bytes
from harness.status import checked_status, create_extension, steady
from harness.strace import traced
from harness.units import GB, KB, MB

pytestmark = pytest.mark.own_servers

CALLS = 1_000
READ_MAPS = r"^read\(\d+</proc/\d+/maps>"


@pytest.mark.parametrize("view", ["hugepage_status", "hugepage_pools", "hugepage_segments", "hugepage_segments(true)"])
def test_many_calls_in_one_backend(new_cluster, view):
    server = create_extension(new_cluster(autovacuum=False).start())
    session = server.connect()
    backend = session.info.backend_pid
    statement = f"SELECT * FROM {view}"
    calls = CALLS if view == "hugepage_status" else CALLS // 10
    for _ in range(calls // 10):
        rows(session, statement)
    files, anonymous, resident = open_files(backend), status_bytes(backend, "RssAnon"), status_bytes(backend, "VmRSS")
    for _ in range(calls):
        rows(session, statement)
    assert open_files(backend) == files
    assert status_bytes(backend, "RssAnon") - anonymous < 64 * KB
    assert status_bytes(backend, "VmRSS") - resident < 256 * KB


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_arguments_in_another_encoding(new_cluster, encoding):
    """An error of the server as for any other value that is invalid, and no line of the program's inside in its log."""
    server = new_cluster(autovacuum=False).start()
    server.sql(f"CREATE DATABASE other TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'")
    server.sql("CREATE EXTENSION pg_hugepages", dbname="other")
    for argument in ("shared_buffers", "huge_page_size"):
        with pytest.raises(psycopg2.errors.InvalidParameterValue):
            server.sql(rf"SELECT * FROM hugepage_preflight({argument} => E'\xa4\xa2')", dbname="other")
    assert server.sql(r"SELECT hugepage_library_version(E'\xa4\xa2') IS NOT NULL AS known", dbname="other") == [{"known": True}]
    assert "pgrx" not in server.log() and "panicked" not in server.log()


def test_statement_timeout_in_a_loop_of_calls(new_cluster):
    server = create_extension(new_cluster().start())
    session = server.connect()
    rows(session, "SELECT * FROM hugepage_status")
    rows(session, "SET statement_timeout = '200ms'")
    for item in ("hugepage_status", "hugepage_segments(true)"):
        with pytest.raises(psycopg2.errors.QueryCanceled):
            rows(session, f"DO $$ BEGIN FOR i IN 1..1000000 LOOP PERFORM * FROM {item}; END LOOP; END $$")
        assert not kernel_files(session.info.backend_pid)


@pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])
def test_what_a_status_opens(new_cluster, preloaded):
    """Files of the kernel and of what sets pools at boot, each closed again, and no program: the configuration is asked for its
    time stamps."""
    server = create_extension(new_cluster(**(PRELOADED if preloaded else {})).start())
    session = server.connect()
    rows(session, "SELECT * FROM hugepage_status")
    files = open_files(session.info.backend_pid)
    with traced(session.info.backend_pid, "open,openat,execve,fork,vfork,clone,clone3") as trace:
        rows(session, "SELECT * FROM hugepage_status")
        assert len(trace.lines('"/(proc|sys)/')) > 3
        assert not trace.lines(r"^(?!open(at2?)?\(.*O_(RDONLY|PATH))")
    assert open_files(session.info.backend_pid) == files


def test_statement_timeout_while_smaps_is_read(new_cluster, root):
    """On a large server one walk takes long: a timeout ends it between two reads, not after the last."""
    server = create_extension(new_cluster().start())
    session = server.connect()
    smaps_read = r"^read\(\d+</proc/\d+/smaps>"
    with traced(session.info.backend_pid, "read", inject="read:delay_exit=50000") as trace:
        rows(session, "SELECT * FROM hugepage_segments(true)")
        whole = len(trace.lines(smaps_read))
        rows(session, "SET statement_timeout = '150ms'")
        with pytest.raises(psycopg2.errors.QueryCanceled):
            rows(session, "SELECT * FROM hugepage_segments(true)")
        assert 0 < len(trace.lines(smaps_read)) - whole < whole / 2
    assert not [name for name in open_files(session.info.backend_pid) if name.startswith("/proc/")]


@pytest.mark.parametrize("page_size", [2 * MB, GB, None], ids=["2MB", "1GB", "base"])
def test_without_procmap_query(new_cluster, pool, page_size):
    """Where the kernel has no PROCMAP_QUERY, /proc/self/maps gives the same answer."""
    server = new_cluster(**({"huge_page_size": f"{page_size // MB}MB"} if page_size else {}))
    pool(page_size or 2 * MB, server.pages_needed(page_size) if page_size else 0)
    create_extension(server.start())
    expected = checked_status(server, landed_in="hugetlb" if page_size else "base")
    session = server.connect()
    # A session's first look reads its maps for the libraries in them.
    checked_status(server, session)
    with traced(session.info.backend_pid, "ioctl,read") as usual:
        assert steady(checked_status(server, session)) == steady(expected)
        assert bool(usual.lines(r"^ioctl\(\d+</proc/\d+/maps>.* = 0")) == has_procmap_query()
        assert bool(usual.lines(READ_MAPS)) != has_procmap_query()
    with traced(session.info.backend_pid, "ioctl,read", inject="ioctl:error=ENOTTY") as refused:
        assert steady(checked_status(server, session)) == steady(expected)
        assert refused.lines(r"^ioctl\(\d+</proc/\d+/maps>.*ENOTTY.*INJECTED")
        assert refused.lines(READ_MAPS)
