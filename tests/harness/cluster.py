"""Throwaway PostgreSQL clusters: each in its own directory, reachable only by a socket there, and removed at the end."""

import os
import pwd
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extras import RealDictCursor

from harness.cgroup import Cgroup
from harness.kernel import meminfo
from harness.poll import until
from harness.processes import CommandFailed, alive, run
from harness.traces import remove_at_exit

SUPERUSER = "postgres"

STOPS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
"""The signals of pg_ctl's modes (pg_ctl.c, set_mode)."""

FILE_CLOCK = 0.04
"""Seconds after which the time of a file's change is certainly earlier than now (src/next_start.rs)."""

REFUSED_RECOVERY = "FATAL:  recovery aborted"
"""What the startup process of a standby logs that has less than its primary (xlogrecovery.c)."""


class Install:
    """An installed PostgreSQL, identified by its pg_config."""

    def __init__(self, pg_config: str | Path) -> None:
        self.pg_config = Path(pg_config)

    @classmethod
    def find(cls, major: int | None = None) -> "Install":
        """The given major; without one, what PG_CONFIG names, or else the newest that packages have installed."""
        if "PG_CONFIG" in os.environ and major is None:
            return cls(os.environ["PG_CONFIG"])
        found = {install.major: install for install in cls.all()}
        if not found or (major is not None and major not in found):
            raise LookupError(f"no PostgreSQL {major or ''} with a pg_config here; installed: {sorted(found)}")
        return found[major or max(found)]

    @classmethod
    def all(cls) -> "list[Install]":
        """The installations of Debian's, Ubuntu's and PGDG's packages; without any, the one on PATH."""
        places = [*Path("/usr/lib/postgresql").glob("*/bin/pg_config"), *Path("/usr").glob("pgsql-*/bin/pg_config")]
        on_path = shutil.which("pg_config")
        return [cls(place) for place in places] or ([cls(on_path)] if on_path else [])

    @cached_property
    def bindir(self) -> Path:
        return Path(self.ask("bindir"))

    @cached_property
    def major(self) -> int:
        return int(re.search(r"\d+", self.ask("version")).group())

    def ask(self, what: str) -> str:
        """The output of `pg_config --WHAT`, for example `sharedir` or `pkglibdir`."""
        return run(self.pg_config, f"--{what}").strip()

    def has_extension(self, name: str) -> bool:
        """Whether the extension's control file and library are installed."""
        control = Path(self.ask("sharedir"), "extension", f"{name}.control")
        return control.exists() and Path(self.ask("pkglibdir"), f"{name}.so").exists()


class Unsupported(Exception):
    """A scenario needs what this PostgreSQL was built without, or what the distribution does not package."""


class StartFailed(Exception):
    """The server did not start; the message is its log."""


class Cluster:
    """A cluster made by initdb, or a hot standby of `upstream`. A context manager: removed at the end of the block.

    Settings are keyword arguments in PostgreSQL's own notation: `Cluster(shared_buffers="128MB", huge_pages=True)`.
    """

    _page_sizes: dict[Path, bool] = {}

    roots: list[Path] = []
    """The directories of all clusters of this process, where a check looks for servers left running."""

    def __init__(self, install: Install | None = None, *, upstream: "Cluster | None" = None, **settings: Any) -> None:
        self.install = install or (upstream.install if upstream else Install.find())
        self.root = _directory_of_server()
        self.roots.append(self.root)
        self.data = self.root / "data"
        self.log_file = self.root / "log"
        self.settings: dict[str, Any] = {}
        try:
            self._fill(upstream)
            self.conf(**{"listen_addresses": "", "unix_socket_directories": self.root, "port": 5432, "fsync": False,
                         "shared_buffers": "128MB", "max_connections": 20, **settings})
        except BaseException:
            self.remove()
            raise

    def _fill(self, upstream: "Cluster | None") -> None:
        if upstream:
            self.command("pg_basebackup", "-D", self.data, "-R", "-c", "fast", "-h", upstream.root, "-U", SUPERUSER)
            self.settings.update(upstream.settings)
            return
        run(*_become(), "cp", "-a", template(self.install.bindir), self.data, cwd=self.root)
        _identify(self.install.bindir, self.data)
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write("include_if_exists 'harness.conf'\n")

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()

    def command(self, program: str, *arguments: str | Path, within: Cgroup | None = None,
                through: Sequence[str] = (), cwd: Path | None = None) -> str:
        """Run a program of this installation as the server's user and return its stdout.

        `through`: a command of root that runs it, such as unshare(1). `cwd`: by default the cluster's directory, because the
        server's user may lack access to the current one.
        """
        return run(*through, *_become(), self.install.bindir / program, *arguments,
                   prepare=within.join if within else None, cwd=cwd or self.root)

    def conf(self, **settings: Any) -> None:
        """Change settings on disk; None restores the default. They take effect at the next start or reload."""
        if settings.get("huge_page_size") not in (None, 0):
            self.needs_page_sizes()
        self.settings.update(settings)
        lines = [f"{name} = {_quoted(value)}\n" for name, value in self.settings.items() if value is not None]
        new = self.data / "harness.conf.new"
        new.write_text("".join(lines))
        # Renamed into place, so that a server that is still reloading never reads half a file.
        new.replace(self.data / "harness.conf")

    def reload(self, *sessions: Any) -> None:
        """Have the server read its files again; these sessions, and all that begin later, have what it has read."""
        time.sleep(FILE_CLOCK)
        loaded = "SELECT pg_conf_load_time() AS at"
        before = [rows(session, loaded)[0]["at"] for session in sessions]
        [last] = self.sql("SELECT pg_conf_load_time() AS at, pg_reload_conf()")
        until("the reload", lambda: self.sql(loaded)[0]["at"] > last["at"])
        for session, at in zip(sessions, before):
            until("the session to reload", lambda: rows(session, loaded)[0]["at"] > at)

    def start(self, within: Cgroup | None = None, through: Sequence[str] = ()) -> "Cluster":
        """Start the server, in a control group or by another command, and wait until it is ready; StartFailed if it is not."""
        try:
            self.command("pg_ctl", "start", "-w", "-s", "-D", self.data, "-l", self.log_file, within=within,
                         through=through)
        except CommandFailed as error:
            raise StartFailed(self.log() or str(error)) from error
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop the server if it runs, as pg_ctl does, which looks only ten times a second whether it has ended; `mode`: see STOPS."""
        if self.running():
            with suppress(FileNotFoundError, ProcessLookupError):
                postmaster = self.postmaster
                os.kill(postmaster, STOPS[mode])
                # Its file goes before it does.
                until(f"the end of {self.root}'s server", lambda: not alive(postmaster), seconds=60)

    def restart(self, within: Cgroup | None = None) -> "Cluster":
        """Stop and start, with the settings now on disk."""
        self.stop()
        return self.start(within)

    def crash(self) -> bool:
        """Kill one backend with SIGKILL and wait: True if the server has restarted itself, False if it has ended."""
        victim, bystander = self.connect(), self.connect()
        logged = len(self.log())
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        until("the crash to end the other sessions", lambda: not _answers(bystander))
        return self.recovers(logged)

    def recovers(self, logged: int, seconds: float = 30.0) -> bool:
        """Wait after a crash, before which the log had `logged` characters: True if the server answers, False if it ends.

        A postmaster whose startup process refuses the recovery is ended: PostgreSQL 18 can be left without that process,
        and then neither answers nor ends (postmaster.c, HandleChildCrash).
        """
        def is_refused() -> bool:
            return REFUSED_RECOVERY in self.log()[logged:]

        until("the server to recover or to end", lambda: self.ready() or not self.running() or is_refused(), seconds)
        if is_refused():
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(self.postmaster, signal.SIGQUIT)
            until("the server to end", lambda: not self.running())
        return self.running()

    def standby(self, **settings: Any) -> "Cluster":
        """A hot standby of this running server, not started."""
        return Cluster(upstream=self, **settings)

    def remove(self) -> None:
        """Stop the server immediately and delete its directory."""
        try:
            self.stop("immediate")
        finally:
            until(f"the end of {self.root}", self._is_removed)

    def _is_removed(self) -> bool:
        # What a process of the server still writes at its end can keep a directory from going at once.
        shutil.rmtree(self.root, ignore_errors=True)
        return not self.root.exists()

    @property
    def postmaster(self) -> int:
        """The postmaster's pid."""
        return int((self.data / "postmaster.pid").read_bytes().split(b"\n", 1)[0])

    def running(self) -> bool:
        """Whether the postmaster runs."""
        try:
            return alive(self.postmaster)
        except (FileNotFoundError, ValueError):
            return False

    def ready(self) -> bool:
        """Whether the server answers a query."""
        try:
            return _answers(self.connect())
        except psycopg2.OperationalError:
            return False

    def log(self) -> str:
        """The server's log on stderr so far."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def connect(self, dbname: str = "postgres", user: str = SUPERUSER) -> Any:
        """A psycopg2 connection in autocommit mode; rows are dictionaries."""
        connection = psycopg2.connect(host=str(self.root), port=5432, dbname=dbname, user=user,
                                      cursor_factory=RealDictCursor)
        connection.autocommit = True
        return connection

    def sql(self, statement: str, *arguments: Any, dbname: str = "postgres", user: str = SUPERUSER) -> list[dict]:
        """Run one statement in a new session; its rows, empty if it returns none."""
        connection = self.connect(dbname, user)
        try:
            return rows(connection, statement, *arguments)
        finally:
            connection.close()

    def pages_needed(self, page_size: int) -> int:
        """Huge pages that the settings on disk need, as the server calculates them; it must be stopped.

        Up to PostgreSQL 18 this is one page too many if the segment fills its pages exactly.
        """
        size = []
        if page_size != meminfo()["Hugepagesize"] or self.settings.get("huge_page_size"):
            self.needs_page_sizes()
            size = ["-c", f"huge_page_size={page_size // 1024}kB"]
        return int(self.command("postgres", "-D", self.data, *size, "-C", "shared_memory_size_in_huge_pages"))

    def needs_page_sizes(self) -> None:
        """Raise Unsupported if this PostgreSQL cannot set huge_page_size, as when built for a glibc before 2.18."""
        bindir = self.install.bindir
        if bindir not in self._page_sizes:
            try:
                self.command("postgres", "-D", self.data, "-c", "huge_page_size=2MB", "-C", "huge_page_size")
                self._page_sizes[bindir] = True
            except CommandFailed as error:
                if "huge_page_size must be 0 on this platform" not in str(error):
                    raise
                self._page_sizes[bindir] = False
        if not self._page_sizes[bindir]:
            raise Unsupported(f"other huge page sizes were not tried: the PostgreSQL in {bindir} has the default size only")


def _become() -> list[str]:
    return ["runuser", "-u", SUPERUSER, "--"] if os.geteuid() == 0 else []


def _directory_of_server() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-")).resolve()
    if os.geteuid() == 0:
        owner = pwd.getpwnam(SUPERUSER)
        os.chown(directory, owner.pw_uid, owner.pw_gid)
    return directory


TEMPLATE = "PG_HUGEPAGES_TEMPLATE"
"""The environment variable of a data directory that no server has used."""


@lru_cache
def template(bindir: Path) -> Path:
    """A data directory that no server has used; it is there until this process ends.

    Copies of it take a tenth of initdb's time and, while they are made, no huge pages of another test. The guests of ./dev lab, where
    initdb takes half a minute, bring one along.
    """
    if TEMPLATE in os.environ:
        return Path(os.environ[TEMPLATE])
    directory = _directory_of_server()
    remove_at_exit(directory)
    run(*_become(), bindir / "initdb", "-D", directory / "data", "-U", SUPERUSER, "-A", "trust", "-N", "--locale=C", "-E", "UTF8",
        cwd=directory)
    return directory / "data"


def _identify(bindir: Path, data: Path) -> None:
    """Give a copy a system identifier of its own, the first 8 bytes of pg_control; pg_resetwal mends the checksum and the WAL."""
    with open(data / "global/pg_control", "r+b") as control:
        control.write(os.urandom(7) + b"\x01")
    run(*_become(), bindir / "pg_resetwal", "-f", "-D", data, cwd=data.parent)


def rows(connection: Any, statement: str, *arguments: Any) -> list[dict]:
    """Run one statement in this session; its rows, empty if it returns none."""
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments or None)
        return [dict(row) for row in cursor.fetchall()] if cursor.description else []


def _answers(connection: Any) -> bool:
    try:
        return bool(rows(connection, "SELECT 1"))
    except psycopg2.Error:
        return False


def _quoted(value: Any) -> str:
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    return "'" + text.replace("'", "''") + "'"
