"""One running server for many configurations, so that their tests share one initdb."""

from harness.cluster import Cluster
from harness.reserved_host import ReservedHost
from harness.status import create_extension
from harness.units import GB, MB

BASE = {"shared_buffers": "32MB", "max_connections": 20}
"""The settings between two tests."""


class SharedServer:
    """The server, running and with the extension, and empty pools of both page sizes; without pools if `reserved_host` has none."""

    fixed = frozenset({"listen_addresses", "unix_socket_directories", "port", "fsync"})

    def __init__(self, reserved_host: ReservedHost) -> None:
        self.reserved_host = reserved_host
        self.base = BASE if reserved_host.has_pools else {**BASE, "huge_pages": False}
        self.server = create_extension(reserved_host.cluster(**self.base).start())
        self.pools = {size: reserved_host.pool(size, 0) for size in (2 * MB, GB) if reserved_host.has_pools}
        self._restored = self._begun()

    def configure(self, **settings: object) -> None:
        """Write these settings to disk, and reset all others to those of before."""
        for name in self.server.settings.keys() - self.base.keys() - self.fixed:
            self.server.settings[name] = None
        self.server.conf(**{**self.base, **settings})

    def restore(self) -> Cluster:
        """The server runs with its first settings in base pages and with empty pools, whatever a test has changed; it starts anew unless
        only files have changed."""
        self.configure()
        self.empty_pools()
        if self.server.running():
            self.server.sql("ALTER SYSTEM RESET ALL")
            if self._begun() == self._restored:
                return self.server
        self.server.restart()
        self._restored = self._begun()
        return self.server

    def _begun(self) -> tuple[object, ...]:
        """What another start, a crash or a reload changes."""
        [times] = self.server.sql("SELECT pg_conf_load_time() AS loaded, (SELECT backend_start FROM pg_stat_activity "
                                  "WHERE backend_type = 'checkpointer') AS started")
        return self.server.postmaster, times["loaded"], times["started"]

    def empty_pools(self) -> None:
        """Remove all unused pages from the pools."""
        for pool in self.pools.values():
            pool.resize(0)
