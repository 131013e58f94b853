"""Other ways to the same numbers: what plain SQL can do, and extensions that Debian's packages bring.

A peer that is neither installed nor in the suites of this machine's apt is named as missing, not left out.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.cluster import Cluster, Install

OF_EACH = "SELECT count(*), sum(substring(pg_read_file('/proc/' || pid || '/{}') from '{}:\\s+(\\d+)')::bigint * 1024) " \
          "FROM pg_stat_activity"

PLAIN_SQL = {
    "pg_read_file, VmPTE": OF_EACH.format("status", "VmPTE"),
    "pg_read_file, smaps_rollup": OF_EACH.format("smaps_rollup", "Rss"),
}
"""The second one is what tools do that sum up Rss or Pss. It holds the lock of each process's memory map meanwhile."""


@dataclass(frozen=True)
class Peer:
    """An extension of somebody else's, and its nearest query."""

    extension: str
    query: str

    def package(self, major: int) -> str:
        """What Debian and PGDG would call it."""
        return f"postgresql-{major}-{self.extension.replace('_', '-')}"


PEERS = (
    Peer("pgnodemx", "SELECT count(*), sum(rss) FROM proc_pid_stat()"),
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
    """The peers that the server can load, after installing what can be had; and why not the others."""
    wanted = [peer for peer in PEERS if not install.has_extension(peer.extension)]
    install_packages(*(peer.package(install.major) for peer in wanted))
    there = [peer for peer in PEERS if install.has_extension(peer.extension)]
    missing = {peer.extension: f"no package {peer.package(install.major)} in the suites of this machine"
               for peer in PEERS if peer not in there}
    return there, missing


def create(cluster: Cluster, peers: list[Peer]) -> None:
    """CREATE EXTENSION for each."""
    for peer in peers:
        cluster.sql(f"CREATE EXTENSION {peer.extension}")
