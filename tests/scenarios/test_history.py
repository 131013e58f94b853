"""The history in the data directory: which records belong to a server, and damage to the file."""

import os
import re
import shutil
import statistics
import time
from datetime import datetime
from pathlib import Path

import pytest

from harness.cluster import SUPERUSER, Cluster, rows
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_samples, await_worker, events, history, worker
from harness.processes import run, status_bytes
from harness.server_log import logged, messages
from harness.small_disk import small_disk
from harness.status import checked_status, create_extension
from harness.strace import traced
from harness.units import KB, MB

pytestmark = pytest.mark.own_servers

NAME = "pg_hugepages.history"


def kept(server: Cluster) -> Path:
    return server.data / NAME


def test_ignore_records_of_the_origin(new_cluster, reserved_host, pool):
    """A standby made by pg_basebackup has its origin's file, but neither shows its records nor compares with them."""
    primary = new_cluster(**WATCHED)
    pool(2 * MB, primary.pages_needed(2 * MB))
    create_extension(primary.start())
    checked_status(primary, landed_in="hugetlb")
    standby = reserved_host.cluster(upstream=primary, hot_standby=True)
    assert "hugetlb" in kept(standby).read_text()
    standby.start()
    await_worker(standby)
    assert standby.sql("SELECT pg_is_in_recovery() AS standby") == [{"standby": True}]
    assert events(standby) == [("start", "base", False)]
    standby.sql("SELECT pg_promote()")
    until("the promotion", lambda: not standby.sql("SELECT pg_is_in_recovery() AS standby")[0]["standby"])
    assert worker(standby)
    standby.restart()
    await_worker(standby)
    assert events(standby) == [("start", "base", False)] * 2
    assert standby.sql("SELECT 1 FROM hugepage_history WHERE regression") == [] and logged(standby, "regressed") == []
    assert events(primary) == [("start", "hugetlb", False)]


def test_separate_two_clusters_of_one_host(new_cluster, pool):
    """Neither cluster reports events of the other."""
    one, other = new_cluster(**WATCHED), new_cluster(**WATCHED)
    borrowed = pool(2 * MB, one.pages_needed(2 * MB))
    create_extension(one.start())
    create_extension(other.start())
    await_worker(one), await_worker(other)
    borrowed.resize(0)
    until("the warning", lambda: logged(one, "^the next start would lose", "WARNING"))
    await_samples(other, 2)
    assert [message.text for message in messages(other.log())] == ["shared memory did not land in huge pages [base_pages]"]
    assert one.crash()
    assert [row[2] for row in events(one)] == [False, True, True]
    assert not any(row[2] for row in events(other))
    [start] = [message for message in messages(one.log()) if "regressed" in message.text]
    assert start.level == "WARNING"


@pytest.mark.any_major
def test_drop_damaged_lines(new_cluster):
    """A truncated or corrupted file loses only its damaged lines: each start works, and logs it once."""
    server = new_cluster(**PRELOADED, huge_pages=False)
    for _ in range(2):
        server.start()
        await_worker(server)
        server.stop()
    whole = kept(server).read_bytes()
    second = whole.index(b"\n") + 1
    end = len(whole)
    cases = [
        (whole[:0], 0, 0), (whole[:1], 0, 1), (whole[:second // 2], 0, 1), (whole[:second - 1], 1, 0),
        (whole[:second], 1, 0), (whole[:second + 8], 1, 1), (whole[:end - 2], 1, 1), (whole[:end - 1], 2, 0),
        (b"\0" * 5000, 0, 1), (os.urandom(70 * KB), 0, None), (b"garbage\n" + whole, 2, 1),
        (whole[:second] + b"\xff" + whole[second:], 1, 1), (whole + b"\n\n{}\n", 2, 3),
    ]
    create = True
    for content, survivors, damaged in cases:
        kept(server).write_bytes(content)
        at = len(server.log())
        server.start()
        if create:
            create_extension(server)
            create = False
        await_worker(server)
        texts = [message.text for message in messages(server.log()[at:])]
        assert texts.pop(0) == "shared memory landed in 4 kB pages, as requested by huge_pages = off"
        assert len(texts) == (0 if damaged == 0 else 1), texts
        assert all(re.match(rf"dropped {damaged or r'[0-9]+'} damaged lines? of history file", text) for text in texts)
        assert len(history(server)) == survivors + 1
        at = len(server.log())
        server.restart()
        await_worker(server)
        assert len(messages(server.log()[at:])) == 1 and len(history(server)) == survivors + 2
        server.stop()


@pytest.mark.any_major
def test_reject_a_file_of_another_kind(new_cluster):
    """Read-only, a link, a directory or a pipe: the server starts, one line has the reason, the file is unchanged."""
    server = new_cluster(**WATCHED, huge_pages=False)
    target = server.root / "target"
    target.write_text("of somebody else")
    target.chmod(0o666)
    for stage, why in (
        (lambda: kept(server).symlink_to(target), "is a symbolic link, not a history file of this server"),
        (lambda: kept(server).mkdir(), "Is a directory"),
        (lambda: os.mkfifo(kept(server)), "is not a plain file, not a history file of this server"),
        (lambda: os.link(target, kept(server)), "is a file with several hard links, not a history file of this server"),
        (lambda: kept(server).touch(0o400), "Permission denied"),
    ):
        stage()
        if os.geteuid() == 0 and not kept(server).is_symlink():
            shutil.chown(kept(server), SUPERUSER)
        at = len(server.log())
        server.start()
        await_worker(server)
        await_samples(server, 2)
        new_messages = [message.text for message in messages(server.log()[at:])]
        assert any(why in text for text in new_messages), (why, new_messages)
        assert len(new_messages) == len(set(new_messages)) <= 3, new_messages
        assert target.read_text() == "of somebody else"
        server.stop()
        kept(server).rmdir() if kept(server).is_dir() else kept(server).unlink()


def test_read_only_directory(new_cluster, pool):
    """The file can be appended to but not trimmed: logged once, and the server runs on."""
    borrowed = pool(2 * MB, 8)
    server = create_extension(new_cluster(**WATCHED, huge_pages=False, **{"pg_hugepages.history_size": 1}).start())
    await_worker(server)
    try:
        server.data.chmod(0o500)
        for count in (9, 10, 11):
            before = len(kept(server).read_text())
            borrowed.resize(count)
            until("the record", lambda: len(kept(server).read_text()) > before)
        [line] = [message.text for message in messages(server.log())[1:]]
        assert line.startswith("could not rewrite history file") and "Permission denied" in line
        assert len(history(server)) == 1
    finally:
        server.data.chmod(0o700)
    server.restart()
    await_worker(server)
    assert len(kept(server).read_text().splitlines()) == 1


def test_cut_file_is_durable(new_cluster, pool):
    """Before the file gets its name its content is on the disk, and afterwards the name."""
    borrowed = pool(2 * MB, 8)
    server = create_extension(new_cluster(**WATCHED, huge_pages=False, **{"pg_hugepages.history_size": 1}).start())
    with traced(await_worker(server), "rename,renameat,renameat2,fsync,fdatasync") as trace:
        borrowed.resize(9)
        until("the cut", lambda: trace.lines("rename") and trace.lines(f"sync.*/{server.data.name}>"))
        # Each call with the name of the last file that it has, a descriptor's or a text.
        calls = [(line.split("(")[0], Path(re.findall(r'[<"]([^<>"]+)[>"]', line)[-1]).name) for line in trace.lines("^[a-z]")]
    assert calls[:3] == [("fsync", f"{NAME}.new"), ("renameat", NAME), ("fsync", server.data.name)], calls


@pytest.mark.any_major
@pytest.mark.quiet_pools
def test_full_disk(new_cluster, root):
    """Without free space the server starts, logs it once, and keeps the earlier records. A pool that changed would be another one."""
    server = new_cluster(**WATCHED, huge_pages=False, max_replication_slots=0, wal_level="minimal", max_wal_senders=0)
    with small_disk(server) as disk:
        create_extension(server.start())
        await_worker(server)
        server.stop()
        # So that the next record needs another block.
        with open(kept(server), "ab") as file:
            file.write(b"x" * (4 * KB - file.tell() % (4 * KB)))
        [before] = kept(server).read_text().splitlines()[:1]
        # PostgreSQL itself needs one block, for postmaster.pid.
        disk.fill(leave=4 * KB)
        at = len(server.log())
        server.start()
        await_worker(server)
        await_samples(server, 2)
        [_block, failed, *tidied] = [message.text for message in messages(server.log()[at:])]
        assert failed.startswith("could not write history file") and "No space left on device" in failed
        # PostgreSQL has given some blocks back meanwhile, or not.
        assert len(tidied) == 1 and re.match("could not rewrite|dropped 1 damaged line", tidied[0]), tidied
        assert kept(server).read_text().startswith(before) and len(history(server)) == 1
        disk.empty()
        server.restart()
        await_worker(server)
        assert len(history(server)) == 2
        server.stop()


def test_a_problem_that_comes_back_is_logged_again(new_cluster, pool):
    """Once while it lasts, and once more after a record could be written."""
    borrowed = pool(2 * MB, 8)
    server = create_extension(new_cluster(**WATCHED, huge_pages=False).start())
    await_worker(server)

    def failures() -> int:
        return len(logged(server, "^could not (open|write) history file"))

    for turn in (1, 2):
        kept(server).unlink()
        kept(server).mkdir()
        borrowed.resize(8 + turn)
        until("the line in the log", lambda: failures() == turn)
        borrowed.resize(10 + turn)
        await_samples(server, 2)
        assert failures() == turn
        kept(server).rmdir()
        borrowed.resize(12 + turn)
        until("the record", lambda: history(server))


@pytest.mark.quiet_pools
def test_an_error_is_logged_as_the_server_does(new_cluster, root):
    """Message, DETAIL and HINT, and no text of a program's; again after a look that succeeded. A record of a pool that changed would
    leave the worker more memory."""
    server = create_extension(new_cluster(**WATCHED, huge_pages=False).start())
    pid = await_worker(server)

    def limit(soft: object) -> None:
        # As the owner, who needs no capability for it.
        run("runuser", "-u", SUPERUSER, "--", "prlimit", f"--pid={pid}", f"--as={soft}:")

    def size_between_looks() -> int:
        """In each second one look asks for memory for a moment."""
        return min(status_bytes(pid, "VmSize") for _ in range(20) if not time.sleep(0.1))

    for turn in (1, 2):
        limit(size_between_looks())
        until("the line in the log", lambda: len(logged(server, "^could not assess shared memory")) == turn)
        limit("unlimited")
        await_samples(server, 2)
    for message in logged(server, "^could not assess shared memory"):
        assert message.text == "could not assess shared memory: out of memory"
        [detail] = message.detail
        assert re.fullmatch(r"The extension asks for [0-9]+ bytes of memory before it reads anything\.", detail), detail
    assert worker(server) == pid


@pytest.mark.parametrize("name", [b"a b'c %d", b"\xe9t\xe9"], ids=["quotes", "latin1"])
def test_odd_data_directory(new_cluster, name):
    server = new_cluster(**PRELOADED, huge_pages=False)
    renamed = server.root / os.fsdecode(name)
    server.data.rename(renamed)
    server.data = renamed
    create_extension(server.start())
    server.restart()
    await_worker(server)
    assert events(server) == [("start", "base", False)] * 2 and kept(server).exists()
    assert len(messages(server.log())) == 2


@pytest.mark.long
@pytest.mark.any_major
def test_many_restarts(new_cluster):
    """50 restarts: the file keeps its size limit, and the last restarts are as fast as the first."""
    size, restarts = 20, 50
    server = new_cluster(**PRELOADED, huge_pages=False, log_timezone="UTC", **{"pg_hugepages.history_size": size})
    took = []
    for _ in range(restarts):
        at = len(server.log())
        server.start()
        ready = re.findall(r"(?m)^(\S+ \S+) UTC .* database system is ready to accept connections", server.log()[at:])[-1]
        last = re.findall(r'"postmaster_start":"([^"]+)Z"', kept(server).read_text())[-1]
        took.append((datetime.fromisoformat(ready) - datetime.fromisoformat(last)).total_seconds())
        server.stop()
        assert len(kept(server).read_text().splitlines()) <= size * 1.1 + 1
    create_extension(server.start())
    assert len(history(server)) == size
    first, last = statistics.median(took[:20]), statistics.median(took[-20:])
    assert last < 1.5 * first, (first, last)
    assert len(messages(server.log())) == restarts + 1


@pytest.mark.any_major
def test_a_session_does_not_hold_a_long_history(new_cluster):
    records = 4000
    server = create_extension(new_cluster(**PRELOADED, huge_pages=False, **{"pg_hugepages.history_size": records}).start())
    await_worker(server)
    short = kept(server).read_bytes()
    with server.connect() as session:
        # The executor keeps the rows of a function up to this size.
        rows(session, "SELECT set_config('work_mem', '64kB', false)")

        def memory() -> int:
            rows(session, "SELECT * FROM hugepage_history")
            return status_bytes(session.info.backend_pid, "RssAnon")

        before = memory()
        kept(server).write_bytes(short * records)
        assert memory() - before < len(short) * records / 2
        found, = rows(session, "SELECT count(*) FROM hugepage_history")
        assert found["count"] == records
