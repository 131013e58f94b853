"""Pages of 1 GB for 4 and 8 GB of shared_buffers: a guest that has just started has so much memory in one piece."""

import os
from typing import Any

import pytest

from harness.cluster import Cluster, rows
from harness.processes import children, page_tables
from harness.smaps import Mapping, main_mapping
from harness.status import create_extension
from harness.units import GB, MB

OBSERVED = 4
"""Sessions of the server in base pages while `hugepage_benefit` looks at it."""

SESSIONS = 500


def test_page_tables_of_8_gb(new_cluster, pool):
    assert_page_tables_as_predicted(new_cluster, pool, "8GB")


def test_page_tables_of_4_gb(new_cluster, pool):
    """After the larger one: memory that was given back is no longer all in one piece."""
    assert_page_tables_as_predicted(new_cluster, pool, "4GB")


def assert_page_tables_as_predicted(new_cluster, pool, shared_buffers: str) -> None:
    """The page tables are what `hugepage_benefit` foretells on a server in base pages, for as many sessions and for all."""
    server = new_cluster(shared_buffers=shared_buffers, max_connections=SESSIONS + 3, autovacuum=False, huge_page_size="1GB")
    gigantic = pool(GB, server.pages_needed(GB))
    of_few, of_all = in_gigantic_pages(server)
    gigantic.resize(0)
    figures = in_base_pages(server)
    assert of_few == pytest.approx(figures["page_tables"]["huge_1gb"], rel=0.2)
    assert of_all == pytest.approx(figures["page_tables_at_max_connections"]["huge_1gb"], rel=0.2)


def in_gigantic_pages(server: Cluster) -> tuple[int, int]:
    """The page tables of the server with few sessions and with all."""
    server.start()
    memory = main_mapping(server.postmaster)
    assert (memory.landed_in, memory.page_size) == ("hugetlb", GB)
    sessions, tables = [], []
    for count in (OBSERVED, SESSIONS):
        while len(sessions) < count:
            sessions.append(with_all_memory(server, memory))
        tables.append(page_tables_of_server(server))
    server.stop()
    return tuple(tables)


def in_base_pages(server: Cluster) -> dict[str, dict[str, Any]]:
    """What `hugepage_benefit` says beside a few sessions, by figure."""
    server.conf(huge_pages=False)
    create_extension(server.start())
    memory = main_mapping(server.postmaster)
    sessions = [with_all_memory(server, memory) for _ in range(OBSERVED)]
    figures = {row["figure"]: row for row in rows(sessions[0], "SELECT * FROM hugepage_benefit('100 ms')")}
    assert figures["page_tables"]["base"] == pytest.approx(page_tables_of_server(server), rel=0.05)
    server.stop()
    return figures


def with_all_memory(server: Cluster, memory: Mapping) -> Any:
    """A session whose process has mapped all of shared memory, which is read from outside (/proc/PID/mem). Its addresses are
    those of the postmaster."""
    session = server.connect()
    size, step = (1, memory.page_size) if memory.landed_in == "hugetlb" else (16 * MB, 16 * MB)
    with open(f"/proc/{session.info.backend_pid}/mem", "rb", buffering=0) as file:
        for address in range(memory.start, memory.end, step):
            os.pread(file.fileno(), min(size, memory.end - address), address)
    return session


def page_tables_of_server(server: Cluster) -> int:
    """The page tables of all processes of the server, in bytes."""
    return page_tables([server.postmaster, *children(server.postmaster)])
