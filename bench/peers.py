"""Other ways to the same numbers: what plain SQL can do, and extensions with the memory of each process.

Peers are tried on a small server first. One that is not installed, or does not work there, is named with the reason.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from harness.cluster import Cluster, Install, StartFailed

OF_EACH = "SELECT count(*), sum(substring(pg_read_file('/proc/' || pid || '/{}') from '{}:\\s+(\\d+)')::bigint * 1024) " \
          "FROM pg_stat_activity"

PLAIN_SQL = {
    "pg_read_file, VmPTE": OF_EACH.format("status", "VmPTE"),
    "pg_read_file, smaps_rollup": OF_EACH.format("smaps_rollup", "Rss"),
}
"""The second one is what tools do that sum up Rss or Pss. It holds the lock of each process's memory map meanwhile."""


@dataclass(frozen=True)
class Peer:
    """An extension of another project, and its nearest query."""

    extension: str
    query: str
    preload: bool = False
    """Whether its library works from shared_preload_libraries alone."""

    def package(self, major: int) -> str:
        """What Debian and PGDG would call it."""
        return f"postgresql-{major}-{self.extension.replace('_', '-')}"

    def is_installed(self, install: Install) -> bool:
        """Whether CREATE EXTENSION would find it."""
        return Path(install.ask("sharedir"), "extension", f"{self.extension}.control").exists()


PEERS = (
    Peer("pgnodemx", "SELECT count(*), sum(rss) FROM proc_pid_stat()", preload=True),
    Peer("pg_proctab", "SELECT count(*), sum(rss) FROM pg_proctab()"),
    Peer("system_stats", "SELECT count(*), sum(memory_bytes) FROM pg_sys_cpu_memory_by_process()"),
)
"""None of them knows page tables: this is what each can say of the memory of every process."""


def install_packages(*packages: str) -> None:
    """Install what of these apt has, as root; say so where that can't be done."""
    if not shutil.which("apt-cache"):
        return
    offered = [package for package in packages if offers(package)]
    if offered and os.geteuid() == 0:
        print(f"bench: installing {' '.join(offered)}", file=sys.stderr)
        script = Path(__file__).parent.parent / "scripts" / "apt-install"
        subprocess.run([script, *offered], stdout=subprocess.DEVNULL, check=False)
    elif offered:
        print(f"bench: not installed, for lack of root: {' '.join(offered)}", file=sys.stderr)


def offers(package: str) -> bool:
    """Whether apt could install it and has not."""
    policy = subprocess.run(["apt-cache", "policy", package], stdout=subprocess.PIPE, text=True, check=False,
                            env={**os.environ, "LC_ALL": "C"}).stdout
    return "Installed: (none)" in policy and "Candidate: (none)" not in policy


def present(install: Install) -> tuple[list[Peer], dict[str, str]]:
    """The peers that work on this PostgreSQL, after installing what can be had; and why not the others."""
    install_packages(*(peer.package(install.major) for peer in PEERS if not peer.is_installed(install)))
    there: list[Peer] = []
    missing: dict[str, str] = {}
    with Cluster(install, huge_pages=False, shared_buffers="16MB") as cluster:
        for peer in PEERS:
            why = why_not(cluster, peer, beside=there)
            if why:
                missing[peer.extension] = why
            else:
                there.append(peer)
    return there, missing


def why_not(cluster: Cluster, peer: Peer, beside: list[Peer]) -> str | None:
    """What is wrong with a peer in a server that has those others; None if its query works there."""
    if not peer.is_installed(cluster.install):
        return f"not installed (Debian's name for it would be {peer.package(cluster.install.major)})"
    cluster.conf(shared_preload_libraries=libraries([*beside, peer]))
    try:
        create(cluster.restart(), [peer])
        cluster.sql(peer.query)
    except (StartFailed, psycopg2.Error) as error:
        return reason(error)
    return None


def reason(error: Exception) -> str:
    """The line of a server's complaint that says what is wrong: of a log the last fatal one."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line.split("FATAL:")[1] for line in reversed(lines) if "FATAL:" in line), lines[0]).strip()


def libraries(peers: list[Peer]) -> str:
    """shared_preload_libraries for a server with these."""
    return ",".join(peer.extension for peer in peers if peer.preload)


def create(cluster: Cluster, peers: list[Peer]) -> None:
    """CREATE EXTENSION for each."""
    for peer in peers:
        cluster.sql(f"CREATE EXTENSION {peer.extension}")
