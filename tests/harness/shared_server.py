"""One running server for many configurations, so that their tests share one initdb."""

from harness.cluster import Cluster
from harness.reserved_host import ReservedHost
from harness.status import create_extension
from harness.units import GB, MB

BASE = {"shared_buffers": "32MB", "max_connections": 20}
"""The settings between two tests."""


class SharedServer:
    """The server, running and with the extension, and empty pools of both page sizes."""

    fixed = frozenset({"listen_addresses", "unix_socket_directories", "port", "fsync"})

    def __init__(self, reserved_host: ReservedHost) -> None:
        self.reserved_host = reserved_host
        self.server = create_extension(reserved_host.cluster(**BASE).start())
        self.pools = {size: reserved_host.pool(size, 0) for size in (2 * MB, GB)}

    def configure(self, **settings: object) -> None:
        """Write these settings to disk, and reset all others to BASE."""
        for name in self.server.settings.keys() - BASE.keys() - self.fixed:
            self.server.settings[name] = None
        self.server.conf(**{**BASE, **settings})

    def restore(self) -> Cluster:
        """Restart the server with BASE in base pages and with empty pools, whatever a test has changed."""
        self.configure()
        if self.server.running():
            self.server.sql("ALTER SYSTEM RESET ALL")
        self.empty_pools()
        return self.server.restart()

    def empty_pools(self) -> None:
        """Remove all unused pages from the pools."""
        for pool in self.pools.values():
            pool.resize(0)
