"""hugepage_backends and hugepage_page_tables, compared with /proc."""

import resource
import time
from pathlib import Path

import psycopg2
import pytest

from harness.cluster import Install, rows
from harness.kernel import kernel_files, meminfo
from harness.pid_namespace import server_in_pid_namespace
from harness.poll import until
from harness.processes import run, status, status_bytes
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.strace import traced
from harness.units import KB, MB

pytestmark = pytest.mark.own_servers

STILL = {"autovacuum": False, **({"io_max_workers": 2} if Install.find().major >= 19 else {})}
"""Settings under which the server neither begins nor ends a process by itself: 19 adapts the number of its I/O workers."""

FIELDS = {"page_tables": "VmPTE", "rss_shmem": "RssShmem", "rss_anon": "RssAnon", "rss_file": "RssFile", "swap": "VmSwap"}


def server_processes(postmaster: int) -> set[int]:
    """The postmaster and all whose parent it is, by looking at every process of the host."""
    found = {postmaster}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if status(int(directory.name))["PPid"] == str(postmaster):
                found.add(int(directory.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def page_tables_of_host(postmaster: int) -> int:
    """The host's PageTables less those of everybody else: what two looks agree on. Others come and go meanwhile, and Linux 6.18 counts
    those of a process that has ended for some tenths of a second more."""
    looks = [page_tables_less_others(postmaster)]

    def agree() -> bool:
        time.sleep(0.3)
        looks.append(page_tables_less_others(postmaster))
        return abs(looks[-1] - looks[-2]) <= MB // 4

    until("the host's page tables to stay as they are", agree)
    return looks[-1]


def page_tables_less_others(postmaster: int) -> int:
    server, others = server_processes(postmaster), 0
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if int(directory.name) not in server:
                others += status_bytes(int(directory.name), "VmPTE")
        except (FileNotFoundError, ProcessLookupError, KeyError):
            pass
    return meminfo()["PageTables"] - others


def test_show_every_process_once(new_cluster):
    server = create_extension(new_cluster(**STILL, logging_collector=True).start())
    idle = [server.connect() for _ in range(5)]
    rows(idle[0], "SET application_name = 'the first'")
    session = server.connect()
    own = session.info.backend_pid
    of_view = []

    def same_as_proc() -> bool:
        """Any process of the server may start, end, or touch a page between the two looks."""
        of_view[:] = rows(session, "SELECT * FROM hugepage_backends")
        shown = {row["pid"]: {name: row[name] for name in FIELDS} for row in of_view if row["pid"] != own}
        others = server_processes(server.postmaster) - {own}
        return shown == {pid: {name: status_bytes(pid, field) for name, field in FIELDS.items()} for pid in others}

    until("the view and /proc to agree about every process", same_as_proc)
    assert len(of_view) == len({row["pid"] for row in of_view})
    types = {row["pid"]: row["backend_type"] for row in of_view}
    assert types[server.postmaster] == "postmaster"
    assert list(types.values()).count("syslogger" if server.install.major >= 19 else "logger") == 1
    assert None not in types.values()
    assert {types[session.info.backend_pid] for session in idle} == {"client backend"}
    activity = rows(session, "SELECT * FROM pg_stat_activity")
    by_pid = {row["pid"]: row for row in of_view}
    for row in activity:
        same = ("backend_type", "datname", "usename", "application_name", "state", "backend_start")
        assert {name: by_pid[row["pid"]][name] for name in same} == {name: row[name] for name in same}
    assert by_pid[idle[0].info.backend_pid]["application_name"] == "the first"
    [sums] = rows(session, "SELECT * FROM hugepage_page_tables")
    by_hand = [status_bytes(pid, "VmPTE") for pid in server_processes(server.postmaster)]
    assert sums["processes"] == len(by_hand)
    assert abs(sums["page_tables_total"] - sum(by_hand)) <= 64 * KB
    assert sums["memory_total"] == meminfo()["MemTotal"]


@pytest.mark.whole_host
@pytest.mark.any_major
def test_explain_the_page_tables_of_the_host(new_cluster, pool):
    """10 backends access 512 MB: the host's PageTables grow as the view shows in base pages, and little in huge pages."""
    size, backends, total = 512 * MB, 10, {}
    server = new_cluster(shared_buffers=f"{size // MB}MB", max_connections=backends + 10, **STILL,
                         huge_pages=False, max_wal_size="64MB")
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(server.start())
    for landed_in in ("base", "hugetlb"):
        if landed_in == "hugetlb":
            server.stop()
            server.conf(huge_pages=True)
            server.start()
        watcher = server.connect()
        fill_shared_buffers(server, size - 64 * MB) if landed_in == "base" else server.sql("SELECT pg_prewarm('touched')")
        sums = "SELECT * FROM hugepage_page_tables"
        [before], host_before = rows(watcher, sums), page_tables_of_host(server.postmaster)
        sessions = [server.connect() for _ in range(backends)]
        for session in sessions:
            touch_all(session)
        [after], host_after = rows(watcher, sums), page_tables_of_host(server.postmaster)
        of_view = after["page_tables_total"] - before["page_tables_total"]
        host = host_after - host_before
        # Of others that come and go some page tables are counted twice.
        assert abs(host - of_view) <= max(0.05 * host, 2 * MB), (landed_in, host, of_view)
        assert main_mapping(watcher.info.backend_pid).landed_in == landed_in
        total[landed_in] = after
        for session in sessions:
            session.close()
        until("the sessions to end", lambda: len(server_processes(server.postmaster)) < backends)
    base, huge = total["base"], total["hugetlb"]
    # 8 bytes for each page of 4 kB in each backend.
    assert base["page_tables_total"] - huge["page_tables_total"] > 0.8 * backends * size / 512
    assert huge["saving"] <= 0.05 * huge["page_tables_total"]
    # What the model foretold on base pages is what came, within a tenth of what there was.
    assert abs(base["estimated_on_huge_pages"] - huge["page_tables_total"]) <= 0.1 * base["page_tables_total"]
    assert base["estimated_at_max_connections"] >= base["page_tables_total"]


def test_unreadable_status_file(new_cluster, root, tmp_path):
    """NULLs and a note for that process only."""
    server = new_cluster(**STILL)
    # In a mount namespace of its own, so that the bind mount over the status file is seen by the server alone.
    server.start(through=["unshare", "--mount", "--propagation", "private"])
    create_extension(server)
    session, hidden = server.connect(), server.connect()
    pid = hidden.info.backend_pid
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0o000)
    nsenter(server.postmaster, "mount", "--bind", str(unreadable), f"/proc/{pid}/status")
    of_view = {row["pid"]: row for row in rows(session, "SELECT * FROM hugepage_backends")}
    assert of_view[pid]["backend_type"] == "client backend"
    assert {of_view[pid][name] for name in FIELDS} == {None}
    assert all(row["page_tables"] > 0 for other, row in of_view.items() if other != pid)
    assert [note for note in session.notices if f"/proc/{pid}/status" in note and "Permission denied" in note]
    [sums] = rows(session, "SELECT * FROM hugepage_page_tables")
    assert sums["processes"] == len(of_view)
    nsenter(server.postmaster, "umount", f"/proc/{pid}/status")


def test_notes_are_few(new_cluster, root, tmp_path):
    """At most five a call, the last with the number of the others, and none in the log."""
    server = new_cluster(**STILL)
    server.start(through=["unshare", "--mount", "--propagation", "private"])
    create_extension(server)
    session, hidden = server.connect(), [server.connect() for _ in range(7)]
    unreadable = tmp_path / "unreadable"
    unreadable.touch(mode=0o000)
    for each in hidden:
        nsenter(server.postmaster, "mount", "--bind", str(unreadable), f"/proc/{each.info.backend_pid}/status")
    rows(session, "SELECT * FROM hugepage_backends")
    assert len(session.notices) == 5
    assert all("Permission denied" in notice for notice in session.notices[:4]) and "there are 3 more notes" in session.notices[4]
    assert "Permission denied" not in server.log()


def test_hidepid(new_cluster, root):
    """The server's user sees its own processes, and the view needs no others."""
    server = new_cluster(**STILL)
    mount = "mount -t proc -o hidepid=2 proc /proc && exec \"$@\""
    server.start(through=["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"])
    create_extension(server)
    session = server.connect()
    visible = session.info.backend_pid
    assert rows(session, "SELECT count(*) FROM pg_ls_dir('/proc') AS name WHERE name = '1'") == [{"count": 0}]
    # A process that has just started touches more, and one that ends meanwhile is only in the first list.
    def is_of_kernel() -> bool:
        of_view = rows(session, "SELECT * FROM hugepage_backends")
        if {row["pid"] for row in of_view} != server_processes(server.postmaster):
            return False
        return all(row["page_tables"] == status_bytes(row["pid"], "VmPTE") for row in of_view if row["pid"] != visible)

    until("the same page tables as the kernel shows", is_of_kernel)
    assert not session.notices


def test_another_pid_namespace(new_cluster, root):
    """If /proc shows another PID namespace, memory is NULL with a note, and every session has a row."""
    with server_in_pid_namespace(new_cluster(**STILL), as_process_1=False) as server:
        create_extension(server)
        session = server.connect()
        of_view = rows(session, "SELECT * FROM hugepage_backends")
        assert {row["backend_type"] for row in of_view} >= {"postmaster", "client backend", "checkpointer"}
        assert [row["datname"] for row in of_view if row["pid"] == session.info.backend_pid] == ["postgres"]
        assert {row[name] for row in of_view for name in FIELDS} == {None}
        [sums] = rows(session, "SELECT * FROM hugepage_page_tables")
        assert (sums["page_tables_total"], sums["saving"]) == (None, None)

        def both_count() -> bool:
            """A session that has ended may still be there in one look."""
            [counts] = rows(session, "SELECT processes, (SELECT count(*) FROM hugepage_backends) AS of_backends "
                                     "FROM hugepage_page_tables")
            return counts["processes"] == counts["of_backends"] > 2

        until("the two views to count the same processes", both_count)
        assert [note for note in session.notices if "namespace" in note]


def test_cancel_between_two_processes(new_cluster, root):
    """If files are slow to read, a timeout ends the view between two processes, not after the last."""
    server = create_extension(new_cluster(max_connections=60).start())
    idle = [server.connect() for _ in range(40)]
    session = server.connect()
    read = r"^read\(\d+</proc/\d+/status>"
    for view in ("hugepage_backends", "hugepage_page_tables"):
        with traced(session.info.backend_pid, "read", inject="read:delay_exit=20000") as trace:
            rows(session, f"SELECT * FROM {view}")
            whole = len(trace.lines(read))
            assert whole > len(idle)
            rows(session, "SET statement_timeout = '200ms'")
            with pytest.raises(psycopg2.errors.QueryCanceled):
                rows(session, f"SELECT * FROM {view}")
            assert 0 < len(trace.lines(read)) - whole < whole / 2
        rows(session, "RESET statement_timeout")
        assert not kernel_files(session.info.backend_pid)


@pytest.mark.long
@pytest.mark.any_major
def test_two_thousand_processes(new_cluster, root):
    """All have a row, and a cancel ends a loop over them."""
    count = 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * count)), hard))
    server = create_extension(new_cluster(max_connections=count + 20, **STILL, shared_buffers="32MB").start())
    session = server.connect()
    sessions = [server.connect() for _ in range(count)]
    [row] = rows(session, "SELECT count(*), count(page_tables) AS read FROM hugepage_backends")
    assert row["count"] == row["read"] == len(server_processes(server.postmaster)) > count
    other = server.connect()
    rows(session, "SET statement_timeout = '50ms'")
    with pytest.raises(psycopg2.errors.QueryCanceled):
        rows(session, "DO $$ BEGIN LOOP PERFORM * FROM hugepage_backends; END LOOP; END $$")
    assert not kernel_files(session.info.backend_pid)
    assert rows(other, "SELECT 1 AS alive") == [{"alive": 1}]
    for each in sessions:
        each.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def nsenter(pid: int, *command: str) -> None:
    """Run a command as root in the mount namespace of a process."""
    run("nsenter", "--target", str(pid), "--mount", "--", *command)
