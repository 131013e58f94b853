"""The main job on a real server: did shared_buffers land in huge pages, and if not, what to type.

Run by `./dev demo`. Borrows huge pages of the host and gives them back; leaves no server and no file.
"""

import fcntl
import os
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from harness.cluster import Cluster, Install, StartFailed
from harness.kernel import meminfo
from harness.lock import LOCK_FILE, host_lock
from harness.pool import Pool, PoolError
from harness.processes import CommandFailed, run
from harness.refusal import refusal
from harness.reserved_host import ReservedHost
from harness.signals import unwind_on_signals
from harness.units import GB, MB

COLUMNS = ("verdict", "message", "hint", "shared_buffers_in_huge_pages", "landed_in", "cause", "pages_needed",
           "pages_missing", "nr_hugepages", "available_hugepages")
QUERY = f"SELECT {', '.join(COLUMNS)} FROM hugepage_status"
SPARE_PAGES = 8
WIDTH = 79
COLOURS = {"ok": 32, "notice": 36, "warning": 33, "critical": 31} if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else {}


@dataclass(frozen=True)
class Size:
    """shared_buffers in PostgreSQL's notation, and the free memory in bytes it takes to show all three acts."""

    shared_buffers: str
    memory: int


SIZES = (Size("1GB", 2 * GB), Size("256MB", 768 * MB), Size("64MB", 256 * MB))


def tell(words: str) -> None:
    """A paragraph between the steps."""
    print("\n" + textwrap.fill(words, WIDTH), flush=True)


def show(cluster: Cluster) -> dict:
    """Print the row as psql shows it, long values wrapped between words; return it."""
    print(f"\n=# SELECT {textwrap.fill(', '.join(COLUMNS), 69, subsequent_indent=' ' * 10)}\n   FROM hugepage_status;")
    answer = cluster.command("psql", "-X", "-x", "-q", "-h", cluster.root, "-U", "postgres", "-c", QUERY)
    for line in answer.rstrip().splitlines():
        name, bar, value = line.partition("| ")
        if not bar:
            print(line[:WIDTH].rstrip())
            continue
        wrapped = textwrap.wrap(value, WIDTH - len(name) - 2) or [""]
        if name.strip() == "verdict" and value in COLOURS:
            wrapped = [f"\x1b[1;{COLOURS[value]}m{value}\x1b[0m"]
        print((name + bar + f"\n{' ' * len(name)}| ".join(wrapped)).rstrip(), flush=True)
    return cluster.sql("SELECT * FROM hugepage_status")[0]


def start(cluster: Cluster) -> None:
    """Start the server with the extension in it."""
    cluster.start()
    cluster.sql("CREATE EXTENSION IF NOT EXISTS pg_hugepages")


def three_acts(reserved_host: ReservedHost, cluster: Cluster, page_size: int) -> None:
    """Enough pages; one too few; what the hint says."""
    needed = cluster.pages_needed(page_size)
    pool = reserved_host.pool(page_size, needed + SPARE_PAGES)
    tell(f"1. The server needs {needed} huge pages. {needed + SPARE_PAGES} are reserved for it, and it starts:")
    start(cluster)
    needed = show(cluster)["pages_needed"]

    cluster.stop()
    pool.resize(pool.numbers().held + needed - 1)
    tell(f"2. The same server starts again, with one page too few: {needed - 1} are there.")
    start(cluster)
    if "huge" not in cluster.log().replace(str(cluster.root), ""):
        tell("It starts as if nothing were wrong: not a word about huge pages in its log. But:")
    row = show(cluster)

    command = re.search(r"sysctl -w vm\.nr_hugepages=\d+", row["hint"] or "")
    if not command:
        raise SystemExit(f"demo: no command in the hint: {row['hint']}")
    tell("3. So let us type what the hint says, and restart:")
    print(f"\n# {command[0]}")
    run(*shlex.split(command[0]))
    cluster.restart()
    show(cluster)


def as_it_is(install: Install, size: Size, why: str) -> None:
    """One row, with the host's pool as we found it."""
    tell(f"{why} So here is the row for a throwaway server with the huge pages as they are:")
    with ReservedHost(keep_free_pages=True) as reserved_host:
        cluster = reserved_host.cluster(install=install, shared_buffers=size.shared_buffers)
        start(cluster)
        show(cluster)


def demo(install: Install) -> None:
    """Choose a size that this host can hold, and show what can be shown."""
    memory = meminfo()
    free = memory["MemAvailable"]
    size = next((size for size in SIZES if size.memory <= free), SIZES[-1])
    tell(f"A throwaway PostgreSQL {install.major} with shared_buffers = {size.shared_buffers}, "
         "huge_pages = try (the default).")
    if size is not SIZES[0]:
        tell(f"({free // MB} MB of memory are free, too little for {SIZES[0].shared_buffers}; "
             "below 1 GB the verdict on a miss is a notice, not a warning.)")
    if "Hugepagesize" not in memory:
        as_it_is(install, size, "This kernel has no huge pages.")
        return
    if refused := refusal():
        tell(f"Can't reserve huge pages: {refused}.")
        as_it_is(install, size, "Root can, in a container with docker run --privileged.")
        return
    pool = Pool(memory["Hugepagesize"])
    before = pool.persistent()
    try:
        with ReservedHost() as reserved_host:
            three_acts(reserved_host, reserved_host.cluster(install=install, shared_buffers=size.shared_buffers), pool.page_size)
        tell(f"Done: the server is gone, and vm.nr_hugepages is {pool.persistent()} (it was {before}).")
    except (PoolError, OSError) as error:
        as_it_is(install, size, f"This host does not let the demo change its huge pages: {error}.")


def say_if_waiting() -> None:
    """One at a time on a host: say so when a test or another demo is at it."""
    if Path(LOCK_FILE).exists():
        with open(LOCK_FILE) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                tell("Another demo or test uses this host's huge pages; waiting until it is done.")


def main() -> int:
    """Exit status 0 when everything could be shown that this user may."""
    unwind_on_signals()
    install = Install.find()
    if not install.has_extension("pg_hugepages"):
        print(f"pg_hugepages is not installed in PostgreSQL {install.major}: ./dev demo does all of it", file=sys.stderr)
        return 1
    say_if_waiting()
    try:
        with host_lock():
            demo(install)
    except StartFailed as error:
        print(f"\nThe server did not start:\n{error}", file=sys.stderr)
        return 1
    except CommandFailed as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
