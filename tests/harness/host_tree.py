"""A host as a tree of files, for the sidecar's --root."""

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

from harness.units import GB, MB

FIXTURES = Path(__file__).parents[1] / "fixtures"

HOSTILE = "/srv/<script>alert('&amp;')</script>\"><img src=http://report.example/x onerror=alert(1)>"
"""A data directory whose name tries to be markup."""


class Host:
    """A host as a tree of files: the fixture `two-nodes` with servers on it.

    Of its 20,000 pages of 2 MB 8000 are in use, so that 12,000 are available.
    """


    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(FIXTURES / "two-nodes", directory, symlinks=True)
        self.write("/proc/sys/kernel/hostname", "db1\n")
        self.write("/proc/uptime", "900000.00 1000000.00\n")
        self.write("/run/systemd/system/own.conf", "")
        self.pid = 1000

    def write(self, path: str, content: str | bytes) -> Path:
        place = self.directory / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def postgresql(self, data: str, size: int, page_size: int, backends: int = 8, **settings: str) -> None:
        """A server with that much shared memory, of which each backend in base pages has touched a twelfth."""
        name = "/anon_hugepage (deleted)" if page_size > 4096 else "/dev/zero (deleted)"
        start = 0x7f0000000000
        pid = self._process(f"/usr/lib/postgresql/15/bin/postgres\0-D\0{data}\0", parent=1, tables=120)
        self._smaps(pid, start, size, page_size, name)
        (self.directory / f"proc/{pid}/cwd").symlink_to(data)
        for _ in range(backends):
            self._process("postgres: app app [local] idle", parent=pid,
                          tables=400 + (size // 12 // 4096 * 8 // 1024 if page_size == 4096 else 0), shmem=size // 12)
        self.write(f"{data}/PG_VERSION", "15\n")
        self.write(f"{data}/global/pg_control", (7710572194914248055).to_bytes(8, "little"))
        self.write(f"{data}/postgresql.conf", "".join(f"{name} = {value}\n" for name, value in
                                                     {"huge_pages": "try", **settings}.items()))

    def oracle(self, sid: str, size: int, page_size: int, processes: int = 30) -> None:
        """An instance with an SGA of that size."""
        pid = self._process(f"ora_pmon_{sid}", parent=1, tables=300)
        self._smaps(pid, 0x60000000, size, page_size, "/SYSV00000000 (deleted)")
        for _ in range(processes):
            self._process(f"oracle{sid} (LOCAL=NO)", parent=1, tables=500)

    def _smaps(self, pid: int, start: int, size: int, page_size: int, name: str) -> None:
        mapping = f"{start:x}-{start + size:x} rw-s 00000000 00:0f 12345                      {name}\n"
        self.write(f"/proc/{pid}/maps", mapping)
        self.write(f"/proc/{pid}/smaps", f"{mapping}Size:           {size // 1024} kB\nKernelPageSize: "
                                         f"{page_size // 1024} kB\nMMUPageSize:    {page_size // 1024} kB\n")

    def _process(self, cmdline: str, parent: int, tables: int, shmem: int = 0) -> int:
        self.pid += 1
        self.write(f"/proc/{self.pid}/cmdline", cmdline)
        self.write(f"/proc/{self.pid}/status", f"Name:\tx\nPPid:\t{parent}\nVmPTE:\t{tables} kB\n"
                                               f"RssAnon:\t9000 kB\nRssFile:\t900 kB\nRssShmem:\t{shmem // 1024} kB\n")
        self.write(f"/proc/{self.pid}/stat", f"{self.pid} (postgres) S {parent} " + "0 " * 17 + "100000 0 0\n")
        self.write(f"/proc/{self.pid}/cgroup", "0::/\n")
        self.write(f"/proc/{self.pid}/limits", "Limit  Soft Limit  Hard Limit  Units\n"
                                               "Max locked memory         unlimited            unlimited            bytes\n")
        return self.pid

    def history(self, path: str, *events: dict[str, Any], machine: str | None = None, directory: str = "/") -> Path:
        """A history file with these records, as the server writes them."""
        of = machine or "db1"
        blank = {"v": 1, "event": "start", "generation": 1, "postmaster_start": "2026-11-01T00:00:00.000000Z",
                 "server_version": "15.14", "host": "db1", "boot_id": None,
                 "instance": {"machine": of, "directory": directory, "system_identifier": "7710572194914248055",
                              "server_version_num": 150014},
                 "landed_in": "hugetlb", "page_size": 2 * MB, "shared_memory": 8 * GB, "pages_needed": 4000,
                 "nr_hugepages": 20000, "free_hugepages": 15000, "resv_hugepages": 3000, "surplus_hugepages": 0,
                 "page_tables": 40 * MB, "restart_outlook": "hugetlb", "cause": None, "threats": [], "lost": None,
                 "detail": None}
        texts = [json.dumps({**blank, **event}).encode() for event in events]
        return self.write(path, b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts))


def eventful() -> list[dict[str, Any]]:
    """Records of a server that lost its huge pages and got them back."""
    before = {"recorded_at": "2026-11-03T08:00:00.000000Z", "landed_in": "hugetlb", "page_size": 2 * MB,
              "restart_outlook": "hugetlb"}
    return [
        {"recorded_at": "2026-11-01T08:00:00.000000Z"},
        {"recorded_at": "2026-11-06T20:00:00.000000Z", "event": "change", "restart_outlook": "base", "nr_hugepages": 4000,
         "lost": before, "detail": "would have kept huge pages of 2 MB at a restart, and would lose them now; "
                                   "nr_hugepages from 20000 to 4000"},
        {"recorded_at": "2026-11-09T03:12:00.000000Z", "event": "crash_restart", "generation": 2, "landed_in": "base",
         "page_size": 4096, "restart_outlook": "base", "cause": "pool_too_small", "lost": before,
         "detail": "was in huge pages of 2 MB, is in 4 kB pages"},
        {"recorded_at": "2026-11-12T06:00:00.000000Z"},
    ]


def busy_host(directory: Path) -> Host:
    """A host with a server as it should be, one with a hostile name in base pages, and an Oracle instance."""
    host = Host(directory)
    host.postgresql("/var/lib/postgresql/15/main", 4000 * 2 * MB, 2 * MB, backends=120)
    host.postgresql(HOSTILE, 30 * GB, 4096, backends=60)
    host.oracle("ORCL", 3000 * 2 * MB, 2 * MB)
    host.history("/var/lib/postgresql/15/main/pg_hugepages.history", *eventful(),
                 directory="/var/lib/postgresql/15/main")
    return host
