"""Shared memory that a running server resizes: every size is exact to the page, and a resize is an event.

Only a server with the patches for resizable shared memory and their test module `test_shmem` can do it.
"""

import re
import threading
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install, Unsupported, rows
from harness.poll import until
from harness.preloaded import WATCHED, await_worker, history
from harness.smaps import Mapping, main_mapping
from harness.status import EXTENSION, create_extension
from harness.units import MB

RESIZES = [4_000_000, 30_000_000, 29_999_999, 1, 0, 16_000_000, 16_524_288, 16_524_289, 2_000_000, 33_000_000]
"""Numbers of entries, of four bytes each: to one page, across pages, by less than a page, and to nothing."""

MAXIMUM = 33_554_432

if Install.find().major >= 20:

    @pytest.fixture(params=["hugetlb", "base"])
    def resizable(request, new_cluster, pool):
        """A server with a structure of 16 MB that may grow to 128 MB."""
        server = new_cluster(**{
            **WATCHED, "shared_preload_libraries": f"test_shmem,{EXTENSION}", "huge_pages": request.param == "hugetlb",
            "resizable_shmem.initial_entries": 4_194_304, "resizable_shmem.max_entries": MAXIMUM})
        script = Path(server.install.ask("sharedir"), "extension", "test_shmem--1.0.sql")
        if not (script.exists() and "resizable_shmem_resize" in script.read_text()):
            raise Unsupported("resizes were not tried: this PostgreSQL has no resizable shared memory")
        if request.param == "hugetlb":
            pool(2 * MB, int(server.command("postgres", "-D", server.data, "-C", "shared_memory_maximum_size_in_huge_pages")))
        create_extension(server.start()).sql("CREATE EXTENSION test_shmem")
        return server

    def accessible(pid: int) -> int:
        """The bytes of the main mapping that a process may access, as the kernel lists its parts."""
        main = main_mapping(pid)
        total = 0
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end, permissions = re.match(r"(\w+)-(\w+) (\S{4})", line).groups()
            if main.start <= int(start, 16) < main.end and permissions[:3] != "---":
                total += int(end, 16) - int(start, 16)
        return total

    def calculated(server: Cluster, main: Mapping) -> int:
        """The same from the server's own list of structures."""
        [structure] = server.sql("SELECT off, size, maximum_size FROM pg_shmem_allocations WHERE name = 'resizable_shmem'")
        page = main.page_size
        end = -(-(structure["off"] + structure["size"]) // page) * page
        return main.length - max((structure["off"] + structure["maximum_size"]) // page * page - end, 0)

    def load(server: Cluster, done: threading.Event) -> None:
        """Sessions that come, work and go."""
        while not done.is_set():
            server.sql("SELECT count(*) FROM pg_class a, pg_class b")

    def test_ten_resizes_under_load(resizable):
        done = threading.Event()
        workers = [threading.Thread(target=load, args=(resizable, done)) for _ in range(2)]
        [thread.start() for thread in workers]
        try:
            for entries in RESIZES:
                resizable.sql("SELECT resizable_shmem_resize(%s)", entries)
                session = resizable.connect()
                rows(session, "SELECT resizable_shmem_write(7)")
                [row] = rows(session, "SELECT * FROM hugepage_segments(true) WHERE segment = 'main'")
                [status] = rows(session, "SELECT * FROM hugepage_status")
                main = main_mapping(session.info.backend_pid)
                assert row["size"] == accessible(session.info.backend_pid) == calculated(resizable, main), entries
                assert (row["reserved"], row["landed_in"]) == (main.length, main.landed_in)
                assert row["size"] >= row["resident"] >= 4 * entries
                assert status["shared_memory"] == row["size"]
                assert status["pages_needed"] == -(-row["size"] // (2 * MB))
                session.close()
        finally:
            done.set()
            [thread.join() for thread in workers]
        assert "terminated by signal" not in resizable.log()

    def test_a_resize_is_an_event(resizable):
        """A worker that has started since sees the size; the module tells no process of it that runs already."""
        pid = await_worker(resizable)
        before = until("the start's record", lambda: history(resizable))[-1]
        resizable.sql("SELECT resizable_shmem_resize(%s)", MAXIMUM)
        resizable.sql("SELECT pg_terminate_backend(%s)", pid)
        await_worker(resizable, other_than=pid)
        event = until("the event", lambda: [row for row in history(resizable) if row["event"] == "resize"])[-1]
        assert event["shared_memory"] - before["shared_memory"] in range(112 * MB - 4 * MB, 112 * MB + 4 * MB)
        assert event["generation"] == before["generation"] and "shared_memory from" in event["detail"]

    def test_a_renamed_parameter_is_unknown(resizable):
        [row] = resizable.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is None and row["lands_in"] == "unknown"
        assert "shared_memory_size_in_huge_pages" in row["detail"]
