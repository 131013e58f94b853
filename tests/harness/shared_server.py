"""One running server whose settings on disk are changed again and again, so that many of them cost one initdb."""

from harness.cluster import Cluster
from harness.stage import Stage
from harness.status import create_extension
from harness.units import GB, MB

BASE = {"shared_buffers": "32MB", "max_connections": 20}
"""The settings between two changes."""


class Rig:
    """The server, running and with the extension, and empty pools of both sizes."""

    fixed = frozenset({"listen_addresses", "unix_socket_directories", "port", "fsync"})

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.server = create_extension(stage.cluster(**BASE).start())
        self.pools = {size: stage.pool(size, 0) for size in (2 * MB, GB)}

    def settle(self, **settings: object) -> None:
        """Put these settings on disk, and no others."""
        for name in self.server.settings.keys() - BASE.keys() - self.fixed:
            self.server.settings[name] = None
        self.server.conf(**{**BASE, **settings})

    def restore(self) -> Cluster:
        """The server in working order, in base pages and without a pool, whatever a test has done."""
        self.settle()
        if self.server.running():
            self.server.sql("ALTER SYSTEM RESET ALL")
        self.empty()
        return self.server.restart()

    def empty(self) -> None:
        """Take all pages out of the pools that nobody has."""
        for pool in self.pools.values():
            pool.resize(0)
