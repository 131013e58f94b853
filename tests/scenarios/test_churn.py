"""Connections that come and go while the views are polled, with so few pids that each is soon another's."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cluster import rows
from harness.kernel import open_files
from harness.lock import host_lock
from harness.shared_buffers import fill_shared_buffers, touch_all
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.own_servers

PER_SECOND, SECONDS = 80, 12
PIDS = 950
"""So many sessions go once around."""
TOUCHED = 96 * MB
FAT = TOUCHED // 512
"""Page tables of a backend that has touched so much on 4 kB pages, at least; a thin one has much less."""


@contextmanager
def few_pids(count: int) -> Iterator[None]:
    """Let pids wrap around at `count` for the length of a block."""
    limit = Path("/proc/sys/kernel/pid_max")
    with host_lock():
        found = limit.read_text()
        limit.write_text(str(count))
        try:
            yield
        finally:
            limit.write_text(found)


class Storm(threading.Thread):
    """Opens sessions, at that pace or as fast as the host can; every other one touches a lot of memory before it calls itself fat."""

    def __init__(self, server) -> None:
        super().__init__()
        self.server, self.sessions, self.pids, self.error = server, 0, [], None

    def run(self) -> None:
        start = time.monotonic()
        try:
            while self.sessions < PER_SECOND * SECONDS:
                session = self.server.connect()
                self.pids.append(session.info.backend_pid)
                if self.sessions % 2:
                    touch_all(session)
                rows(session, f"SET application_name = '{'fat' if self.sessions % 2 else 'thin'}'")
                session.close()
                self.sessions += 1
                time.sleep(max(0, start + self.sessions / PER_SECOND - time.monotonic()))
        except Exception as error:
            self.error = error


@pytest.mark.long
@pytest.mark.whole_host
@pytest.mark.any_major
def test_no_row_is_anothers(new_cluster, root):
    """For so long that the pids go once around."""
    server = create_extension(new_cluster(max_connections=60, huge_pages=False, shared_buffers="160MB").start())
    fill_shared_buffers(server, TOUCHED)
    session = server.connect()
    views = ["hugepage_backends", "hugepage_page_tables", "hugepage_status"]
    for view in views:
        rows(session, f"SELECT * FROM {view}")
    files = open_files(session.info.backend_pid)
    storm = Storm(server)
    polls, seen = 0, {"fat": 0, "thin": 0}
    with few_pids(PIDS):
        storm.start()
        while storm.is_alive():
            for view in views[1:]:
                rows(session, f"SELECT * FROM {view}")
            of_view = rows(session, "SELECT * FROM hugepage_backends")
            assert len(of_view) == len({row["pid"] for row in of_view})
            for row in of_view:
                if row["application_name"] in seen and row["page_tables"] is not None:
                    seen[row["application_name"]] += 1
                    assert (row["page_tables"] >= FAT) == (row["application_name"] == "fat"), row
            polls += 1
        storm.join()
    assert storm.error is None
    assert len(set(storm.pids)) < len(storm.pids), "no pid came twice, so nothing was tried"
    assert seen["fat"] and seen["thin"], seen
    assert polls > SECONDS
    assert open_files(session.info.backend_pid) == files
