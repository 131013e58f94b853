"""The kernel's strict accounting of memory: what it has promised never exceeds a limit (vm.overcommit_memory = 2)."""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.kernel import meminfo
from harness.lock import host_lock
from harness.units import GB, KB

ROOT_HAS_MORE = 2 * GB
"""What processes of root may still get when others get nothing, so that nothing else on the host suffers."""


def fold_committed_counters() -> None:
    """Let the kernel add up what each of its processors has promised. A processor keeps up to 1/256 of its share of memory
    to itself (mm/mm_init.c, mm_compute_batch), and the check against the limit looks at the sum alone (mm/util.c)."""
    allowed = os.sched_getaffinity(0)
    more_than_a_batch = meminfo()["MemTotal"] // len(allowed) // 128
    try:
        for processor in allowed:
            os.sched_setaffinity(0, {processor})
            mmap.mmap(-1, more_than_a_batch, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def strict_overcommit() -> Iterator[Callable[[int], None]]:
    """Switch it on for the block, in which the function given leaves so many bytes to processes that are not root's."""
    sysctls = {name: Path("/proc/sys/vm") / name for name in
               ("overcommit_memory", "overcommit_kbytes", "overcommit_ratio", "admin_reserve_kbytes", "user_reserve_kbytes")}

    def leave(room: int) -> None:
        fold_committed_counters()
        limit = meminfo()["Committed_AS"] + ROOT_HAS_MORE + room
        sysctls["overcommit_kbytes"].write_text(str(limit // KB))

    with host_lock():
        before = {name: file.read_text() for name, file in sysctls.items()}
        try:
            sysctls["admin_reserve_kbytes"].write_text(str(ROOT_HAS_MORE // KB))
            sysctls["user_reserve_kbytes"].write_text("0")
            leave(4 * GB)
            sysctls["overcommit_memory"].write_text("2")
            yield leave
        finally:
            sysctls["overcommit_memory"].write_text(before["overcommit_memory"])
            # Each of the two sets the other to zero.
            used = "overcommit_kbytes" if int(before["overcommit_kbytes"]) else "overcommit_ratio"
            for name in (used, "admin_reserve_kbytes", "user_reserve_kbytes"):
                sysctls[name].write_text(before[name])
