"""One asker at a time in a server, whoever asks: the others wait as for a table, and use its answer if their question is the same."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest

from harness.asker import askers, programs
from harness.background_statement import BackgroundStatement
from harness.cluster import Cluster, Install, rows
from harness.own_programs import own_programs, replace_server
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_answer
from harness.processes import children
from harness.status import EXTENSION, create_extension

pytestmark = pytest.mark.own_servers

ASK = "SELECT * FROM hugepage_preflight()"
SESSIONS = 12
QUERIES = 20
WAITS = "SELECT count(*) AS count FROM pg_locks WHERE locktype = 'userlock' AND NOT granted"
HELD = "SELECT count(*) AS count FROM pg_locks WHERE locktype = 'userlock'"
COUNTS = 'case "$*" in *shared_memory_size_in_huge_pages*) echo "$*" >> COUNTED; sleep 1;; esac; exec {real} "$@"'
"""A server's program that takes a second for the question of the size, and counts."""


def number(server: Cluster, statement: str) -> int:
    return server.sql(statement)[0]["count"]


def is_preloaded(server: Cluster) -> bool:
    return EXTENSION in str(server.settings.get("shared_preload_libraries"))


def await_idle(server: Cluster) -> None:
    """Wait until the worker, if there is one, has no asker."""
    if is_preloaded(server):
        await_answer(server)
        until("the asker to end", lambda: not askers(server))


@pytest.fixture(params=["loaded", "preloaded", "standby", "preloaded standby"])
def server(request, new_cluster) -> Cluster:
    settings = PRELOADED if "preloaded" in request.param else {}
    server = create_extension(new_cluster(huge_pages=False, max_connections=30, **settings).start())
    server.sql("CREATE DATABASE other")
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="other")
    server.sql("CREATE TABLE large AS SELECT generate_series(1, 200000) AS number")
    server.sql("VACUUM ANALYZE large")
    if "standby" in request.param:
        server = new_cluster(upstream=server, huge_pages=False, max_connections=30).start()
    await_idle(server)
    return server


def test_sessions_that_ask_without_end(server):
    """They leave the slots of background workers to parallel queries, and the worker has its turn, too."""
    if is_preloaded(server):
        server.conf(**WATCHED)
        server.reload()
    stop = threading.Event()
    answers: list[dict] = []

    def ask(number: int) -> None:
        session = server.connect("other" if number % 2 else "postgres")
        while not stop.is_set():
            answers.extend(rows(session, ASK if number % 3 else "SELECT * FROM hugepage_preflight(max_connections => 40)"))
        session.close()

    threads = [threading.Thread(target=ask, args=[number]) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    try:
        until("answers", lambda: answers)
        session = server.connect()
        for setting in ("parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0"):
            rows(session, f"SET {setting}")
        most = 0
        for _ in range(QUERIES):
            plan = "\n".join(row["QUERY PLAN"] for row in rows(session, "EXPLAIN (ANALYZE) SELECT count(*) FROM large"))
            assert "Workers Launched: 2" in plan, plan
            most = max(most, len(askers(server)))
        began = time.monotonic()
        while time.monotonic() - began < 2:
            most = max(most, len(askers(server)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert most == 1
    assert {row["will_start"] for row in answers} == {True}
    assert len(answers) > SESSIONS and number(server, HELD) == 0


@pytest.fixture(params=["loaded", "preloaded"])
def counting(request, new_cluster) -> Iterator[tuple[Cluster, Callable[[], int]]]:
    """A server whose program is slow, and how often it was asked for the size."""
    settings = PRELOADED if request.param == "preloaded" else {}
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-programs-") as place:
        os.chmod(place, 0o777)
        server = create_extension(new_cluster(install=own_programs(Install.find(), Path(place)), huge_pages=False, **settings).start())
        await_idle(server)
        counted = Path(place) / "counted"
        replace_server(server.install, COUNTS.replace("COUNTED", str(counted)))
        yield server, lambda: len(counted.read_text().splitlines())
        server.stop("immediate")


def test_the_same_answer(counting):
    server, count = counting
    asks = [BackgroundStatement(server, ASK) for _ in range(5)]
    # Another question, which nobody else has.
    asks.append(BackgroundStatement(server, "SELECT * FROM hugepage_preflight('20MB')"))
    for one in asks:
        assert one.end(15) is None
    assert {one.rows[0]["shared_memory"] for one in asks[:5]} == {asks[0].rows[0]["shared_memory"]}
    assert asks[5].rows[0]["shared_memory"] < asks[0].rows[0]["shared_memory"]
    once = count()
    assert 2 <= once <= 4
    # Whoever asks later, asks anew.
    server.sql(ASK)
    assert count() == once + 1


def test_a_change_while_others_wait(counting):
    """An answer about files that have changed is not theirs."""
    server, _ = counting
    first = BackgroundStatement(server, ASK)
    until("the first to ask", lambda: programs(server))
    server.conf(shared_buffers="20MB")
    second = BackgroundStatement(server, ASK)
    assert first.end(15) is None and second.end(15) is None
    assert second.rows[0]["shared_memory"] < 100 << 20


@pytest.fixture
def stuck(server) -> Iterator[Cluster]:
    """Its next start would load a library that never ends loading: nobody writes into that pipe."""
    library = server.root / "stuck.so"
    os.mkfifo(library)
    library.chmod(0o644)
    loaded = server.settings.get("shared_preload_libraries")
    server.conf(shared_preload_libraries=f"{loaded}, {library}" if loaded else str(library))
    return server


def test_who_waits(stuck):
    """By lock_timeout, cancel and the end of the session, in any database; who has asked no longer holds anything after a cancel."""
    server = stuck
    asks = BackgroundStatement(server, ASK)
    until("the first to ask", lambda: [child for asker in askers(server) for child in children(asker)])
    impatient = server.connect("other")
    rows(impatient, "SET lock_timeout = '300ms'")
    rows(impatient, "SET deadlock_timeout = '100ms'")
    with pytest.raises(psycopg2.errors.LockNotAvailable):
        rows(impatient, ASK)
    assert rows(impatient, "SELECT 1 AS alive") == [{"alive": 1}]
    waits = [BackgroundStatement(server, ASK) for _ in range(2)]
    until("two to wait", lambda: number(server, WAITS) == 2)
    server.sql("SELECT pg_cancel_backend(%s)", waits[0].pid)
    assert isinstance(waits[0].end(2), psycopg2.errors.QueryCanceled)
    server.sql("SELECT pg_terminate_backend(%s)", waits[1].pid)
    assert isinstance(waits[1].end(2), psycopg2.OperationalError)
    assert len(askers(server)) == 1
    next_one = BackgroundStatement(server, ASK, "BEGIN")
    until("the next to wait", lambda: number(server, WAITS) == 1)
    server.sql("SELECT pg_cancel_backend(%s)", asks.pid)
    assert isinstance(asks.end(2), psycopg2.errors.QueryCanceled)
    until("the next to ask", lambda: number(server, WAITS) == 0 and askers(server))
    # A subtransaction that catches the cancel has let go, too.
    server.sql("SELECT pg_cancel_backend(%s)", next_one.pid)
    assert isinstance(next_one.end(2), psycopg2.errors.QueryCanceled)
    until("nobody to hold it", lambda: number(server, HELD) == 0)


def test_a_caught_cancel_and_a_long_transaction(stuck):
    """Neither keeps others waiting."""
    server = stuck
    caught = server.connect()
    caught.autocommit = False
    rows(caught, "SET statement_timeout = '500ms'")
    rows(caught, """DO $$ BEGIN PERFORM hugepage_preflight(); EXCEPTION WHEN query_canceled THEN NULL; END $$""")
    assert number(server, HELD) == 0
    caught.rollback()
    server.conf(shared_preload_libraries=EXTENSION if is_preloaded(server) else "")
    rows(caught, "SET statement_timeout = 0")
    [row] = rows(caught, ASK)
    assert row["will_start"] is True, row
    assert number(server, HELD) == 0
    assert server.sql(ASK)[0]["will_start"] is True


def test_the_worker_waits_its_turn(new_cluster):
    """Its asker counts: it comes after that of a session."""
    server = create_extension(new_cluster(huge_pages=False, **PRELOADED).start())
    await_idle(server)
    library = server.root / "stuck.so"
    os.mkfifo(library)
    library.chmod(0o644)
    server.conf(shared_preload_libraries=f"{EXTENSION}, {library}")
    asks = BackgroundStatement(server, "SELECT * FROM hugepage_preflight('20MB')")
    until("the session's asker", lambda: askers(server))
    server.sql("SELECT pg_reload_conf()")
    most = 0
    while asks.running():
        most = max(most, len(askers(server)))
        time.sleep(0.02)
    assert most == 1
    until("the worker's asker", lambda: askers(server), seconds=5)
