"""The askers of a server, background workers that alone have children, and the server's programs that they run."""

from harness.cluster import Cluster
from harness.processes import children, command_line


def askers(cluster: Cluster) -> list[int]:
    """Pids of the askers that run."""
    return [pid for pid in children(cluster.postmaster) if "pg_hugepages asker" in command_line(pid)]


def programs(cluster: Cluster) -> list[int]:
    """Pids of the server's programs that they run: of their children those that print the value of a parameter."""
    return [pid for asker in askers(cluster) for pid in children(asker) if " -C " in command_line(pid)]
