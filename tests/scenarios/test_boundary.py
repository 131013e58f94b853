"""The boundary: a session, the worker and the postmaster open files of /proc, /sys and the data directory, and nothing else; they parse no
configuration of others, run no program and fork nothing. The kernel's list of their system calls says so.
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cluster import Cluster, rows
from harness.own_etc import SYSCTL, start_with_etc
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_worker
from harness.status import EXTENSION, create_extension
from harness.strace import Trace, traced

pytestmark = pytest.mark.own_servers

FORKS = r"^(\d+ +)?(clone3?|v?fork|execve(at)?)\("
OPENS = r"^(\d+ +)?(open(at2?)?|creat)\("
CALLS = r"^(\d+ +)?\w+\("

MAX_OPENS = 60
MAX_CALLS = 200

VIEWS = "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'v' AND relname LIKE 'hugepage%' ORDER BY 1"

OF_THE_HOST = {SYSCTL: "vm.nr_hugepages = 3\n", "hugepage-sidecar/next-boot": "4200 tuned\n"}
"""What sets a pool at the next boot, for somebody else to read."""


def opened(line: str) -> str:
    """The path that a line of strace opens: as the kernel has it, or as it was asked for if there is none."""
    found = re.search(r"= \d+<([^>]*)>", line)
    return found[1].removesuffix(" (deleted)") if found else re.search(r'"([^"]*)"', line)[1]


def beyond(trace: Trace, server: Cluster) -> list[str]:
    """What was opened beyond the boundary; a path without a slash at its start is one of the data directory."""
    # The server itself has its dynamic shared memory there.
    inside = ("/proc/", "/sys/", f"{server.data}/", "/dev/shm/PostgreSQL.")
    # At a reload the server itself reads its abbreviations of time zones.
    paths = {path for line in trace.lines(OPENS) if "/timezonesets/" not in (path := opened(line))}
    return sorted(path for path in paths if path.startswith("/") and not f"{path}/".startswith(inside))


def start(new_cluster: Callable[..., Cluster], **settings: object) -> Cluster:
    return create_extension(start_with_etc(new_cluster(huge_pages=False, autovacuum=False, **settings), OF_THE_HOST))


@pytest.mark.parametrize("settings", [{}, PRELOADED], ids=["loaded", "preloaded"])
def test_sessions(new_cluster, root, settings):
    """Each view, first and again, with a configuration that has been reloaded and with one that has not."""
    server = start(new_cluster, **settings)
    for change in ({"shared_buffers": "140MB"}, {"work_mem": "5XB"}):
        session = server.connect()
        # The server reads its catalogs, and the library with all that it is linked to.
        views = [f"SELECT * FROM {row['name']}" for row in rows(session, VIEWS)] + ["SELECT * FROM hugepage_preflight()"]
        rows(session, f"LOAD '{EXTENSION}'")
        assert len(views) > 8
        for reloaded in (False, True):
            server.conf(**change)
            if reloaded:
                rows(session, "SELECT pg_reload_conf()")
                rows(session, "SELECT 1 AS handled")
            with traced(session.info.backend_pid, "%file,%process", follow=True) as trace:
                for statement in views + views:
                    rows(session, statement)
                assert trace.lines(OPENS)
                assert beyond(trace, server) == []
                assert trace.lines(FORKS) == []


@pytest.mark.any_major
def test_worker(new_cluster, root):
    """Over samples, and a reload that leaves something to ask for."""
    server = start(new_cluster, **WATCHED)
    with traced(await_worker(server), "%file,%process", follow=True) as trace:
        def samples() -> int:
            return len(trace.lines('"/proc/meminfo"'))

        until("samples", lambda: samples() >= 2)
        server.conf(shared_buffers="140MB")
        until("samples of files that have changed", lambda: samples() >= 4)
        server.sql("SELECT pg_reload_conf()")
        until("the files to be read by the server itself", lambda: trace.lines("harness.conf.* = [0-9]"))
        before = samples()
        until("samples after the reload", lambda: samples() >= before + 2)
        assert beyond(trace, server) == []
        assert trace.lines(FORKS) == []


@pytest.mark.any_major
def test_postmaster(new_cluster, root):
    """Whatever it opens at its start beyond the boundary it opens without the library, too."""
    def beyond_at_start(**settings: object) -> set[str]:
        server = new_cluster(huge_pages=False, **settings)
        with tempfile.NamedTemporaryFile(prefix="pg_hugepages-strace-") as output:
            # strace lives as long as the server, and would hold the pipes of who starts it.
            server.start(through=["sh", "-c", 'exec strace -D -f -y -o "$0" -e trace=%file "$@" >/dev/null 2>&1', output.name])
            pid = server.postmaster
            # strace goes on with the server's processes until these end.
            server.stop()
            until("strace to end", lambda: re.search(rf"^{pid} +\+\+\+ exited", Path(output.name).read_text(), re.MULTILINE))
            lines = Path(output.name).read_text().splitlines()
        own = [line for line in lines if line.startswith(f"{pid} ") and re.search(OPENS, line)]
        paths = {opened(line) for line in own}
        assert paths
        root = str(server.root)
        inside = ("/proc/", "/sys/", f"{root}/", "/dev/shm/PostgreSQL.")
        return {path for path in paths if path.startswith("/") and not path.startswith(inside)}

    more = beyond_at_start(**PRELOADED) - beyond_at_start()
    assert {path for path in more if not re.search(r"\.so(\.\d+)*$", path)} == set()


@pytest.mark.parametrize("settings", [{}, WATCHED], ids=["loaded", "preloaded"])
def test_what_a_warm_look_costs(new_cluster, root, settings):
    """System calls of SELECT * FROM hugepage_status in a session that has looked before: no busy machine changes their number."""
    server = start(new_cluster, **settings)
    if settings:
        await_worker(server)
    session = server.connect()
    for _ in range(3):
        rows(session, "SELECT * FROM hugepage_status")
    with traced(session.info.backend_pid, "all") as trace:
        rows(session, "SELECT * FROM hugepage_status")
        until("its last call", lambda: trace.lines("sendto"))
        calls, opens = len(trace.lines(CALLS)), len(trace.lines(OPENS))
    assert (opens <= MAX_OPENS, calls <= MAX_CALLS) == (True, True), (opens, calls)
