"""What is said of huge pages, measured: page tables, logins, reads, restarts and the page cache, in base pages and in
pages of 2 MB and 1 GB, in turns within one run.

One cluster for each size of shared_buffers is started again and again, in the next kind of pages each time.
"""

import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import build
from harness.cluster import Cluster, rows
from harness.kernel import meminfo
from harness.poll import until
from harness.pool import PoolError, borrowed_pool
from harness.processes import alive, page_tables
from harness.reserved_host import ReservedHost
from harness.units import GB, MB
from servers import BASE_PER_TABLE, LANDED, OF_SESSION, IdleSessions, process_ids

KINDS = {"base": None, "2 MB": 2 * MB, "1 GB": GB}
"""The kinds of pages, each with its page size."""

TOUCH = "SELECT touch_shared_buffers()"
READERS = 2
KEYS_A_READ = 255
"""Of one statement of a reader, as pgio's work_unit; each key has a page of its own."""

CACHE_SESSIONS = 500

Point = dict[str, Any]
"""What (`figure`), in which `pages`, at which `size` of shared_buffers and `sessions`, and its `value`."""


class Plan:
    """How much is measured."""

    def __init__(self, quick: bool) -> None:
        self.sizes = [128 * MB, 256 * MB] if quick else [GB, 4 * GB, 8 * GB]
        self.sessions = [5, 10, 20] if quick else [10, 100, 300, 500, 1000]
        self.cache_sessions = self.sessions[-1] if quick else CACHE_SESSIONS
        self.turns = 2 if quick else 5
        self.logins, self.seconds = (3, 1.0) if quick else (9, 10.0)

    @property
    def most(self) -> int:
        """The size for what is measured at one size alone."""
        return self.sizes[-1]


def rows_of(directory: Path, quick: bool) -> Iterator[Point]:
    """A point for each measurement; one that has `skipped` says why there is none.

    Base pages with many sessions come last: their page tables, gigabytes that the kernel cannot move, leave hardly a gigabyte of
    memory in one piece for pages of 1 GB.
    """
    plan = Plan(quick)
    with ReservedHost() as reserved_host:
        clusters = {}
        for size in reversed(plan.sizes):
            clusters[size] = reserved_host.cluster(shared_buffers=f"{size // MB}MB", max_connections=max(plan.sessions) + 20,
                                                   autovacuum=False, superuser_reserved_connections=3, wal_level="minimal",
                                                   max_wal_senders=0, max_wal_size="64GB", checkpoint_timeout="1h")
            fill(clusters[size], size, directory)
            for turn in range(plan.turns):
                for pages in KINDS:
                    yield from measured(clusters[size], {"pages": pages, "size": size}, f"turn {turn + 1} of {plan.turns}",
                                        lambda cluster: one(cluster, size, plan))
        for pages in reversed(KINDS):
            for size, cluster in clusters.items():
                yield from measured(cluster, {"pages": pages, "size": size}, "many sessions",
                                    lambda cluster: with_sessions(cluster, size, pages, plan))


def measured(cluster: Cluster, case: Point, what: str, measure: Callable[[Cluster], Iterator[Point]]) -> Iterator[Point]:
    """The points of a server that runs in these pages meanwhile."""
    print(f"headlines: {case['size'] // MB} MB, {case['pages']} pages, {what}", file=sys.stderr)
    try:
        with running(cluster, case["pages"]):
            for point in measure(cluster):
                yield {**case, **point}
    except PoolError as why:
        yield {**case, "what": what, "skipped": str(why)}


def fill(cluster: Cluster, size: int, directory: Path) -> None:
    """The table, made in 4 kB pages."""
    cluster.conf(huge_pages=False)
    cluster.start()
    build.prepare(cluster, directory)
    cluster.sql("CREATE EXTENSION pg_prewarm")
    make_table(cluster, size)
    cluster.stop()


def make_table(cluster: Cluster, size: int) -> None:
    """A table of half of shared_buffers in which each row has a page, with an index on random keys."""
    count = size // 2 // (8 << 10)
    cluster.sql("CREATE TABLE pgio (key bigint, scratch bigint DEFAULT 0, filler text)")
    cluster.sql("ALTER TABLE pgio ALTER filler SET STORAGE PLAIN")
    # 7919 is prime, so this is a permutation of the keys.
    cluster.sql("INSERT INTO pgio SELECT i::bigint * 7919 %% %s, 0, repeat('x', 5000) FROM generate_series(1, %s) i", count, count)
    cluster.sql("CREATE INDEX ON pgio (key)")
    cluster.sql("VACUUM (FREEZE, ANALYZE) pgio")


@contextmanager
def running(cluster: Cluster, pages: str) -> Iterator[None]:
    """The server in that kind of pages; PoolError if there are not enough."""
    page_size = KINDS[pages]
    with ExitStack() as stack:
        cluster.conf(huge_pages=False, huge_page_size=None)
        if page_size:
            cluster.conf(huge_page_size=f"{page_size // MB}MB")
            stack.enter_context(borrowed_pool(page_size, cluster.pages_needed(page_size)))
            cluster.conf(huge_pages=True)
        stack.callback(cluster.stop)
        cluster.start()
        [landed] = cluster.sql("SELECT landed_in FROM hugepage_status")
        assert landed["landed_in"] == LANDED["huge" if page_size else "base"], landed
        yield


def one(cluster: Cluster, size: int, plan: Plan) -> Iterator[Point]:
    """What is measured in each turn, on a server that has just started."""
    # Zeroes the memory, so that what follows finds it there.
    yield {"figure": "first touch", "value": seconds(lambda: cluster.sql(TOUCH))}
    if size == plan.most:
        yield {"figure": "prewarm", "value": seconds(lambda: cluster.sql("SELECT pg_prewarm('pgio')"))}
    yield {"figure": "login", "value": statistics.median(login(cluster) for _ in range(plan.logins))}
    if size == plan.most:
        yield {"figure": "hits", "value": hits_per_second(cluster, size, plan.seconds)}
        yield {"figure": "checkpoint", "value": checkpoint(cluster)}
        yield {"figure": "crash restart", "value": crash(cluster)}


def seconds(work: Callable[[], Any]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def login(cluster: Cluster) -> float:
    """The seconds of a new session until it has touched all of shared_buffers."""
    def work() -> None:
        session.append(cluster.connect())
        rows(session[0], TOUCH)

    session: list[Any] = []
    took = seconds(work)
    session[0].close()
    return took


def hits_per_second(cluster: Cluster, size: int, duration: float) -> float:
    """Pages that sessions find in shared_buffers by random keys, by the server's own count."""
    count = "SELECT sum(blks_hit) AS hits FROM pg_stat_database"
    keys = size // 2 // (8 << 10)

    def read(number: int) -> None:
        chance = random.Random(number)
        session = cluster.connect()
        rows(session, "SET enable_seqscan = off")
        rows(session, "PREPARE unit AS SELECT sum(scratch) FROM pgio WHERE key BETWEEN $1 AND $1 + %s" % (KEYS_A_READ - 1))
        while time.monotonic() < end:
            rows(session, f"EXECUTE unit({chance.randrange(max(1, keys - KEYS_A_READ))})")
        session.close()

    def counted() -> int:
        return int(cluster.sql(count)[0]["hits"])

    clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    [others] = cluster.sql(clients)
    before, begun = counted(), time.monotonic()
    end = begun + duration
    with ThreadPoolExecutor(READERS) as readers:
        list(readers.map(read, range(READERS)))
    took = time.monotonic() - begun
    until("the readers to be gone", lambda: cluster.sql(clients) == [others])
    return (counted() - before) / took


def with_sessions(cluster: Cluster, size: int, pages: str, plan: Plan) -> Iterator[Point]:
    """Page tables, and the memory that is left, while more and more sessions have touched all of shared_buffers."""
    idle_sessions = IdleSessions(cluster, touching=True)
    own_tables = 0 if KINDS[pages] else size // BASE_PER_TABLE
    # Shared memory is there, so that what is available afterwards is for sessions.
    cluster.sql(TOUCH)
    before = meminfo()["MemAvailable"]
    try:
        for sessions in plan.sessions:
            more = (sessions - idle_sessions.size) * (OF_SESSION + own_tables)
            if meminfo()["MemAvailable"] < more + GB // 2:
                yield {"what": f"{sessions} sessions", "skipped": "the memory of this machine does not hold them"}
                continue
            idle_sessions.grow(sessions)
            yield {"figure": "page tables", "sessions": sessions, "value": until("all processes to stay", lambda: tables(cluster))}
            if sessions == plan.cache_sessions:
                yield {"figure": "memory left", "sessions": sessions, "value": meminfo()["MemAvailable"], "before": before}
    finally:
        idle_sessions.close()


def tables(cluster: Cluster) -> int:
    """The page tables of all processes; 0 if one ended meanwhile."""
    try:
        return page_tables(process_ids(cluster))
    except (FileNotFoundError, KeyError, ProcessLookupError):
        return 0


def checkpoint(cluster: Cluster) -> float:
    """The seconds of a checkpoint that writes a quarter of shared_buffers."""
    cluster.sql("UPDATE pgio SET scratch = scratch + 1 WHERE key % 2 = 0")
    took = seconds(lambda: cluster.sql("CHECKPOINT"))
    cluster.sql("VACUUM pgio")
    cluster.sql("CHECKPOINT")
    return took


def crash(cluster: Cluster) -> float:
    """The seconds from the death of a backend until the server answers, with new shared memory."""
    victim, bystander = cluster.connect(), cluster.connect()
    begun = time.perf_counter()
    os.kill(victim.info.backend_pid, signal.SIGKILL)
    for wait in (lambda: not alive(bystander.info.backend_pid), cluster.ready):
        while not wait():
            # until() would wait longer and longer.
            time.sleep(0.001)
            assert time.perf_counter() < begun + 600, cluster.log()
    return time.perf_counter() - begun


def values(points: list[Point], figure: str, **case: Any) -> dict[str, list[float]]:
    """By kind of pages, what the turns have measured of a figure in that case."""
    found: dict[str, list[float]] = {pages: [] for pages in KINDS}
    for point in points:
        if point.get("figure") == figure and "value" in point and all(point.get(name) == value for name, value in case.items()):
            found[point["pages"]].append(point["value"])
    return {pages: took for pages, took in found.items() if took}


def differ(base: list[float], huge: list[float]) -> bool:
    """Whether all turns of one are beyond all turns of the other, and the medians are a twentieth apart."""
    apart = abs(statistics.median(huge) / statistics.median(base) - 1) > 0.05
    return apart and (max(huge) < min(base) or min(huge) > max(base))
