"""`hugepage-sidecar collapse` on a real server: one truth afterwards, under load, and what ends in the middle of it.

A server whose memory is aligned starts with `shmem_enabled` = advise; the fixture puts the host's word back.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import pytest

from harness import sidecar
from harness.cluster import SUPERUSER, Cluster, Unsupported, rows
from harness.controllers import control_group
from harness.kernel import meminfo
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_worker, history
from harness.processes import mounts, page_tables, run
from harness.server_log import logged
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.sidecar import OK, WARNING
from harness.smaps import BASE_PAGE, main_mapping
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.any_major

BUFFERS = 128 * MB
SLOW = 16
"""MB in a second: a collapse that lasts long enough for something to end in the middle of it."""

NOT_HERE = "this kernel did not collapse memory of this program"


@pytest.fixture
def no_pool(pool):
    return pool(2 * MB, 0)


@pytest.fixture
def aligned(new_cluster, no_pool, thp):
    """Makes a running server of 4 kB pages whose memory is aligned and was touched."""
    thp("advise")

    def start(within=None, **settings) -> Cluster:
        server = create_extension(new_cluster(shared_buffers=f"{BUFFERS // MB}MB", **settings).start(within=within))
        fill_shared_buffers(server, BUFFERS * 3 // 4)
        assert main_mapping(server.postmaster).landed_in == "base"
        return server
    return start


def arguments(server: Cluster, *more: str | int) -> list[str]:
    return ["collapse", "--instance", str(server.data), "--yes", "--reserve-percent", "5", *map(str, more)]


def collapse(server: Cluster, *more: str | int) -> sidecar.Answer:
    """Unsupported on a kernel that has no MADV_COLLAPSE."""
    for _ in range(5):
        answer = sidecar.run(*arguments(server, *more), seconds=180)
        if NOT_HERE in answer.stderr:
            raise Unsupported("MADV_COLLAPSE of shared memory is since Linux 6.1")
        # Where a CPU is emulated a range takes long beside other work; what is done stays.
        if "one range took" not in answer.stderr:
            break
    return answer


@contextmanager
def collapsing(server: Cluster) -> Iterator["subprocess.Popen[str]"]:
    """A slow collapse that has made some huge pages."""
    process = sidecar.start(*arguments(server, "--max-rate", SLOW))
    try:
        until("the first huge pages", lambda: process.poll() is not None or main_mapping(server.postmaster).pmd_mapped > 0)
        if process.poll() is not None and NOT_HERE in process.stderr.read():
            raise Unsupported("MADV_COLLAPSE of shared memory is since Linux 6.1")
        assert process.poll() is None, process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]") -> sidecar.Answer:
    output, errors = process.communicate(timeout=60)
    return sidecar.Answer(process.returncode, output, errors)


def of_sidecar(server: Cluster) -> dict:
    """What `status` says of it."""
    [row] = [row for row in sidecar.run("status", "--format", "json").json()["instances"] if row["name"] == str(server.data)]
    return row


def split(server: Cluster) -> None:
    """Split the huge pages of the main segment as swap does. In each of them a page goes and comes back, while the server stands still
    (fallocate(2), mm/shmem.c)."""
    mapping = main_mapping(server.postmaster)
    processes = [server.postmaster, *map(int, Path(f"/proc/{server.postmaster}/task/{server.postmaster}/children").read_text().split())]
    segment = os.open(f"/proc/{server.postmaster}/map_files/{mapping.start:x}-{mapping.end:x}", os.O_RDWR)

    def tell(number: int) -> None:
        for pid in processes:
            # A worker of autovacuum may have ended.
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    try:
        tell(signal.SIGSTOP)
        for start in range(0, mapping.length - 2 * MB, 2 * MB):
            page = os.pread(segment, BASE_PAGE, start)
            run("fallocate", "--punch-hole", "--offset", str(start), "--length", str(BASE_PAGE), f"/proc/{os.getpid()}/fd/{segment}")
            os.pwrite(segment, page, start)
    finally:
        os.close(segment)
        tell(signal.SIGCONT)
    assert main_mapping(server.postmaster).pmd_mapped == 0


def test_one_truth_afterwards(aligned):
    """Every output says `thp`; each change is an event of its own in the history and the log; a restart loses them."""
    server = aligned(**WATCHED)
    await_worker(server)
    session = server.connect()
    touch_all(session)
    before = page_tables([session.info.backend_pid])
    answer = collapse(server)
    assert answer.status == OK, answer
    mapping = main_mapping(server.postmaster)
    # Linux 6.1 maps in the postmaster only what it has touched.
    assert mapping.landed_in == "thp" and meminfo()["ShmemHugePages"] > BUFFERS // 2
    assert page_tables([session.info.backend_pid]) < before / 2, answer.stdout

    def row() -> dict:
        [found] = rows(session, "SELECT landed_in, verdict, message, hint FROM hugepage_status")
        return found

    until("the worker to see it", lambda: row()["landed_in"] == "thp")
    seen, told = of_sidecar(server), row()
    for one in (seen, told):
        assert (one["landed_in"], one["verdict"]) == ("thp", "notice"), one
        assert "not reserved: swap may split them, and they are gone after a restart" in one["message"]
        assert "vm.nr_hugepages" in one["hint"] and "restart" in one["hint"]
    assert sidecar.run("check", "--instance", server.data).status == OK
    [segment] = rows(session, "SELECT landed_in FROM hugepage_segments WHERE segment = 'main'")
    assert segment["landed_in"] == "thp"
    until("the record", lambda: history(server)[-1]["event"] == "collapse")
    assert (history(server)[-1]["landed_in"], history(server)[-1]["regression"]) == ("thp", False)
    # Its worker may have looked in the middle of it.
    assert {message.level for message in logged(server, "in transparent huge pages now")} == {"LOG"}

    split(server)
    until("the worker to see the split", lambda: row()["landed_in"] == "base")
    assert of_sidecar(server)["landed_in"] == "base"
    until("the record", lambda: history(server)[-1]["event"] == "split")
    assert collapse(server).status == OK
    until("the worker to see it again", lambda: row()["landed_in"] == "thp")
    server.restart()
    session = server.connect()
    assert (row()["landed_in"], of_sidecar(server)["landed_in"]) == ("base", "base")


def test_no_view_walks_page_tables(aligned):
    """Without a worker that has looked, the pages are unknown, and the notes say who would know."""
    server = aligned(**PRELOADED)
    await_worker(server)
    assert collapse(server).status == OK
    [row] = server.sql("SELECT landed_in, notes FROM hugepage_status")
    assert row["landed_in"] == "unknown" and any("its worker reads" in note for note in row["notes"]), row
    server.reload()
    until("the worker's sample", lambda: server.sql("SELECT landed_in FROM hugepage_status")[0]["landed_in"] == "thp")


@contextmanager
def pgbench(server: Cluster) -> Iterator[None]:
    """Its load goes on in the block, one run of a second after the other, and no transaction fails until the last has ended."""
    address = ["-h", str(server.root), "-U", SUPERUSER]
    server.command("pgbench", "-q", "-i", "-s", "4", *address, "postgres")
    is_over = Event()

    def load() -> None:
        while not is_over.is_set():
            output = server.command("pgbench", "-n", "-c", "4", "-T", "1", *address, "postgres")
            assert "number of transactions actually processed: 0" not in output, output

    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(load)
        try:
            until("the load", lambda: running.done() or server.sql("SELECT count(*) FROM pgbench_history")[0]["count"] > 100)
            yield
        finally:
            is_over.set()
        running.result()


def test_under_load(aligned):
    """Transactions go on beside it, and afterwards checksums and B-trees are right."""
    server = aligned(max_connections=40)
    # From 18 on initdb enables them.
    if server.sql("SHOW data_checksums") == [{"data_checksums": "off"}]:
        server.stop()
        server.command("pg_checksums", "--enable", "-D", server.data)
        server.start()
    with pgbench(server):
        answer = collapse(server)
    assert answer.status == OK, answer
    assert main_mapping(server.postmaster).landed_in in ("thp", "partial thp")
    check_data(server)
    server.sql("CREATE EXTENSION amcheck")
    server.sql("""SELECT bt_index_parent_check(c.oid, true) FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
                  WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p'""")
    assert "ERROR" not in server.log()
    server.stop()
    assert "Bad checksums:  0" in server.command("pg_checksums", "--check", "-D", server.data)


def test_a_standby(aligned):
    """A hot standby that replays a loaded primary's changes gets huge pages, then the primary; afterwards both have the same data."""
    primary = aligned(max_connections=40)
    with primary.standby(max_connections=40) as standby:
        standby.start()
        with pgbench(primary):
            until("the replay", lambda: standby.sql("SELECT to_regclass('pgbench_history') AS it")[0]["it"])
            for server in (standby, primary):
                answer = collapse(server)
                # Linux 6.1 may find a range in use at each try.
                assert answer.status == OK or "(EAGAIN)" in answer.stdout, answer.stdout + answer.stderr
        for server in (standby, primary):
            assert main_mapping(server.postmaster).landed_in in ("thp", "partial thp")
        [end] = primary.sql("SELECT pg_current_wal_lsn() AS lsn")
        until("the last change", lambda: standby.sql(f"SELECT pg_last_wal_replay_lsn() >= '{end['lsn']}' AS done")[0]["done"])
        assert check_data(standby) == check_data(primary)
        assert "ERROR" not in standby.log() + primary.log()


def check_data(server: Cluster) -> int:
    """The sum of what pgbench has changed, the same in each of its tables."""
    sums = " UNION ALL ".join(f"SELECT sum({column}) FROM {table}" for table, column in (
        ("pgbench_accounts", "abalance"), ("pgbench_tellers", "tbalance"), ("pgbench_branches", "bbalance"),
        ("pgbench_history", "delta")))
    [total] = {row["sum"] for row in server.sql(sums)}
    return total


@pytest.mark.parametrize("event", ["crash", "stop", "restart"])
def test_the_server_ends_in_the_middle(aligned, event):
    """It ends with the reason, and touches nothing of the memory that the next start has mapped."""
    server = aligned()
    with collapsing(server) as process:
        getattr(server, event)()
        answer = ended(process)
    assert answer.status == WARNING and "what is done stays" in answer.stderr, answer
    if event == "stop":
        assert not server.running()
        server.start()
    assert main_mapping(server.postmaster).landed_in == "base"
    assert of_sidecar(server)["landed_in"] == "base"
    assert server.sql("SELECT 1 AS one") == [{"one": 1}]


def test_the_sidecar_is_killed_in_the_middle(aligned):
    """What is done stays, the server goes on, and both faces say that it is a part; another call does the rest."""
    server = aligned(**WATCHED)
    await_worker(server)
    session = server.connect()
    touch_all(session)
    with collapsing(server) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 0 < main_mapping(server.postmaster).pmd_mapped < BUFFERS // 2
    assert of_sidecar(server)["landed_in"] == "partial thp"
    landed = "SELECT landed_in FROM hugepage_status"
    until("the worker to see it", lambda: rows(session, landed)[0]["landed_in"] == "partial thp")
    touch_all(session)
    assert collapse(server).status == OK
    until("the worker to see the rest", lambda: rows(session, landed)[0]["landed_in"] == "thp")


def test_a_signal_ends_it_between_two_ranges(aligned):
    server = aligned()
    with collapsing(server) as process:
        process.send_signal(signal.SIGINT)
        answer = ended(process)
    assert answer.status == WARNING and "interrupted; what is done stays" in answer.stderr, answer
    assert 0 < main_mapping(server.postmaster).pmd_mapped < BUFFERS


def test_it_stops_below_the_limit_of_a_group(aligned):
    """The limit comes near while it works: it stops above it, and nobody is killed."""
    is_v1 = any(mount.fstype == "cgroup" and mount.point.name == "memory" for mount in mounts())
    limit, used = ("memory.limit_in_bytes", "memory.usage_in_bytes") if is_v1 else ("memory.max", "memory.current")
    with control_group(**{limit: meminfo()["MemTotal"]}) as group:
        server = aligned(within=group)
        with collapsing(server) as process:
            stat = dict(line.split() for line in group.file("memory.stat").read_text().splitlines())
            files = int(stat.get("total_inactive_file", stat["inactive_file"]))
            group.file(limit).write_text(str(int(group.file(used).read_text()) - files + 64 * MB))
            answer = ended(process)
        assert answer.status == WARNING and f"{limit} has" in answer.stderr and "keeps" in answer.stderr, answer
        assert server.sql("SELECT 1 AS one") == [{"one": 1}]
        assert "terminated by signal" not in server.log()
        server.stop()


def test_what_it_refuses(new_cluster, no_pool, thp):
    """Memory that is not aligned, and huge pages that are there already: nothing is touched."""
    thp("never")
    server = new_cluster(shared_buffers="16MB").start()
    answer = sidecar.run(*arguments(server))
    if main_mapping(server.postmaster).start % (2 * MB):
        assert answer.status == sidecar.UNKNOWN and "not aligned" in answer.stderr, answer
    server.stop()
    thp("advise")
    server.start()
    assert collapse(server, "--dry-run").status == OK
    assert main_mapping(server.postmaster).landed_in == "base"
    assert collapse(server).status == OK
    again = collapse(server)
    assert again.status == OK or "already" in again.stderr, again


@pytest.mark.parametrize("file", ["/sys/devices/system/node", "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/shmem_enabled"])
def test_what_could_not_be_read_is_a_refusal(aligned, file):
    """It might have been a reason."""
    if not Path(file).exists():
        raise Unsupported(f"this kernel has no {file}")
    server = aligned()
    fails = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", file, "-e", "trace=open,openat,openat2", "-e", "inject=open,openat,openat2:error=EIO"]
    answer = sidecar.run(*arguments(server), through=fails)
    assert answer.status == sidecar.UNKNOWN and "nothing was touched" in answer.stderr and file in answer.stderr, answer
    assert main_mapping(server.postmaster).landed_in == "base"
