"""One node: what every face says of a server in huge pages, by the system calls that the kernel has."""

import ctypes
import os
from pathlib import Path

from instance import sidecar_row

from harness import sidecar
from harness.cluster import StartFailed
from harness.kernel import has_procmap_query, meminfo
from harness.next_boot import well
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import MB

PROCMAP_QUERY, SIZE_OF_QUERY = 0xC0686611, 104
ENOTTY = 25


def server_in_huge_pages(new_cluster, pool):
    server = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    return create_extension(server.start())


def kernel_answers_procmap_query():
    """Asks the kernel itself, by ioctl(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    query = bytearray(SIZE_OF_QUERY)
    query[0:8] = SIZE_OF_QUERY.to_bytes(8, "little")
    query[8:16] = (0x10).to_bytes(8, "little")    # the next mapping
    maps = os.open("/proc/self/maps", os.O_RDONLY)
    try:
        buffer = (ctypes.c_char * SIZE_OF_QUERY).from_buffer(query)
        done = libc.ioctl(maps, ctypes.c_ulong(PROCMAP_QUERY), buffer)
        return done == 0 or ctypes.get_errno() != ENOTTY
    finally:
        os.close(maps)


def test_lands_with_and_without_procmap_query(new_cluster, pool, check_both):
    """The page size is right on kernels that answer PROCMAP_QUERY (6.11) and on those that do not."""
    server = server_in_huge_pages(new_cluster, pool)
    assert kernel_answers_procmap_query() == has_procmap_query()
    check_both(server, {"verdict": well()}, verdict="ok", landed_in="hugetlb", restart_outlook="hugetlb", cause=None, pages_missing=0)
    segments = server.sql("SELECT * FROM hugepage_segments WHERE segment = 'main'")
    assert [(row["page_size"], row["size"]) for row in segments] == [(2 * MB, main_mapping(server.postmaster).length)]


def test_pool_too_small_by_one(new_cluster, pool, check_both):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed - 1)
    create_extension(server.start())
    check_both(server, verdict="notice", landed_in="base", cause="pool_too_small", pages_missing=1, restart_outlook="base")


def test_openat2_is_not_needed(new_cluster, pool, tmp_path):
    """Kernels before 5.6 lack it, and some seccomp filters refuse it: the sidecar answers without having called it."""
    server_in_huge_pages(new_cluster, pool)
    trace = tmp_path / "trace"
    instance = sidecar_row(through=["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=openat2,openat",
                                            "-e", "inject=openat2:error=ENOSYS"])
    assert (instance["verdict"], instance["landed_in"], instance["restart_outlook"]) == (well(), "hugetlb", "hugetlb"), instance
    calls = trace.read_text()
    assert "openat(" in calls and "openat2(" not in calls


def test_hidepid_is_unknown_to_an_ordinary_user(new_cluster, pool):
    server_in_huge_pages(new_cluster, pool)
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
    answer = sidecar.run("check", user="nobody", through=hidden)
    assert answer.status == sidecar.UNKNOWN, answer


def test_strict_accounting_of_memory(new_cluster, pool, check_both):
    """vm.overcommit_memory = 2, which no scenario sets on a host: what is said of a start on both sides of the border comes true."""
    pool(2 * MB, 0)
    server = create_extension(new_cluster().start())
    mode = Path("/proc/sys/vm/overcommit_memory")
    before = mode.read_text()
    mode.write_text("2")
    try:
        for beyond, will_start in ((-120 * MB, True), (-120 * MB, True), (0, None), (120 * MB, False)):
            memory = meminfo()
            reserve = int(Path("/proc/sys/vm/admin_reserve_kbytes").read_text()) * 1024
            left = memory["CommitLimit"] - memory["Committed_AS"] - reserve + main_mapping(server.postmaster).length
            # Shared memory is 2% larger than shared_buffers, and 16 MB.
            buffers = f"{(left + beyond - 16 * MB) * 98 // 100 // MB}MB"
            [row] = server.sql("SELECT * FROM hugepage_preflight(%s)", buffers)
            assert row["will_start"] is will_start, (row, memory)
            assert will_start or "CommitLimit" in row["detail"], row
            server.conf(shared_buffers=buffers)
            server.stop()
            try:
                server.start()
                starts = True
            except StartFailed:
                starts = False
            assert will_start in (None, starts), server.log()
            if will_start:
                check_both(server, landed_in="base", restart_outlook="base", crash_outlook="base")
            elif not starts:
                server.conf(shared_buffers="128MB")
                server.start()
    finally:
        mode.write_text(before)
