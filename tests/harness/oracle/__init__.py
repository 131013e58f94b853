"""Stand-ins for Oracle: real processes with Oracle's names and real shared memory, in a temporary ORACLE_HOME.

    with Oracle() as oracle:
        farm = oracle.instance("TEST1", SysV(32 * MB, page_size=2 * MB), SysV(2 * MB), servers=3)
        farm.pmon, farm.servers, farm.shmids

They need none of Oracle's software, and imitate nothing else of its behaviour. At the end of the block their processes,
segments and files are removed, also if a test fails or a process was killed.
"""

import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.lock import host_lock
from harness.processes import run
from harness.signals import signals_blocked
from harness.traces import remove_at_exit

SOURCE = Path(__file__).parent / "stand_in.c"
IPC_RMID = 0
CLONE_NEWIPC = 0x08000000


class StandInFailed(Exception):
    """A stand-in could not make a segment or file."""


@dataclass(frozen=True)
class SysV:
    """A System V segment of `size` bytes; in huge pages if `page_size` is set."""

    size: int
    page_size: int = 0
    touch: bool = True
    key: int = 0

    def to_make(self) -> str:
        return f"sysv {self.size} {self.page_size} {self.touch:d} {self.key}"


@dataclass(frozen=True)
class MappedFile:
    """A mapped file: one of AMM's /dev/shm/ora_SID_..., or one on hugetlbfs."""

    path: Path
    size: int
    touch: bool = True

    def to_make(self) -> str:
        return f"file {self.size} {self.touch:d} {self.path}"

    def to_map(self, touch: bool) -> str:
        return f"map {self.size} {touch:d} {self.path}"


@contextmanager
def hugetlb_shm_group(group: int) -> Iterator[None]:
    """Set vm.hugetlb_shm_group: processes of this group may create segments in huge pages without root."""
    setting = Path("/proc/sys/vm/hugetlb_shm_group")
    with host_lock():
        found = setting.read_text()
        setting.write_text(str(group))
        try:
            yield
        finally:
            setting.write_text(found)


def automatic_memory(sid: str, granules: int, granule: int, touch: bool = True) -> list[MappedFile]:
    """The files of an SGA with AMM: one for each granule."""
    return [MappedFile(Path(f"/dev/shm/ora_{sid}_{os.getpid()}_{number}"), granule, touch)
            for number in range(granules)]


class Instance:
    """One instance: its PMON, and the server processes that have attached its shared memory."""

    def __init__(self, oracle: "Oracle", sid: str, home: Path, identity: dict[str, Any]) -> None:
        self.sid, self.home = sid, home
        self.shmids: list[int] = []
        self.files: list[MappedFile] = []
        self.has_own_ipc = False
        self._oracle, self._identity = oracle, identity
        self._processes: list[subprocess.Popen[str]] = []

    @property
    def pmon(self) -> int:
        """Its process id."""
        return self._processes[0].pid

    @property
    def servers(self) -> list[int]:
        """The ids of its other processes."""
        return [process.pid for process in self._processes[1:]]

    @property
    def alert_log(self) -> Path:
        """The path of its alert log; creates the directory."""
        kind = "asm" if self.sid.startswith("+ASM") else "rdbms"
        trace = self._oracle.base / "diag" / kind / self.sid.lower() / self.sid / "trace"
        trace.mkdir(parents=True, exist_ok=True)
        return trace / f"alert_{self.sid}.log"

    def server(self, *arguments: str, touch: bool = True) -> int:
        """Start a process that attaches the instance's memory, by default named `oracleSID (LOCAL=NO)`; its pid."""
        orders = [f"attach {shmid} {touch:d}" for shmid in self.shmids]
        orders += [file.to_map(touch) for file in self.files]
        return self.start(arguments or (f"oracle{self.sid}", "(LOCAL=NO)"), orders).pid

    def start(self, arguments: Sequence[str], orders: Sequence[str]) -> subprocess.Popen[str]:
        """Start a process and wait until it has carried out its orders (stand_in.c)."""
        process = subprocess.Popen(arguments, executable=self.home / "bin" / "oracle", stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, cwd="/", env={}, **self._identity)
        self._processes.append(process)
        with process.stdin as into:
            into.writelines(f"{order}\n" for order in orders)
        with process.stdout as output:
            for line in output:
                word, _, rest = line.strip().partition(" ")
                if word == "sysv":
                    self.shmids.append(int(rest))
                if word == "ready":
                    return process
                if word == "error:":
                    raise StandInFailed(f"{arguments[0]}: {rest}")
        raise StandInFailed(f"{arguments[0]} ended with {process.wait()}")

    def enter_ipc(self) -> None:
        """In a new process: make the namespace of System V segments, or enter PMON's."""
        libc = ctypes.CDLL(None, use_errno=True)
        if self._processes:
            with open(f"/proc/{self.pmon}/ns/ipc") as namespace:
                done = libc.setns(namespace.fileno(), CLONE_NEWIPC)
        else:
            done = libc.unshare(CLONE_NEWIPC)
        if done != 0:
            raise OSError(ctypes.get_errno(), "namespace of System V segments")

    def kill(self) -> None:
        """Kill all its processes, as in a crash: segments and files remain."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End its processes, PMON last, which removes the memory; then remove what remains."""
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
            process.wait()
        # A namespace takes its segments with it; here their numbers are other people's.
        for shmid in [] if self.has_own_ipc else self.shmids:
            ctypes.CDLL(None).shmctl(shmid, IPC_RMID, None)
        for file in self.files:
            file.path.unlink(missing_ok=True)


class Oracle:
    """ORACLE_BASE with its homes. A context manager: at the end it stops the instances and removes the directory."""

    def __enter__(self) -> "Oracle":
        self.directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-oracle-")).resolve()
        # Other users run the program.
        self.directory.chmod(0o755)
        self.base = self.directory / "u01/app/oracle"
        self.instances: list[Instance] = []
        try:
            self.home = self._home("product/19.0.0/dbhome_1")
        except BaseException:
            shutil.rmtree(self.directory)
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        with signals_blocked():
            for instance in reversed(self.instances):
                instance.stop()
            shutil.rmtree(self.directory)

    def instance(self, sid: str, *memory: SysV | MappedFile, kind: str = "ora", user: int | None = None,
                 group: int | None = None, setgid: int | None = None, memlock: int | None = None,
                 servers: int = 0, prepare: Callable[[], None] | None = None, own_ipc: bool = False) -> Instance:
        """Start an instance with `servers` server processes.

        `kind` is the prefix of the names of background processes (`ora`, `asm`, `mdb`). Processes run as `user` and
        `group`. `setgid` is the group of a home whose program is setgid, which restricts what /proc shows of them.
        `memlock` is their limit on locked memory in bytes. `prepare` runs in each process before its program, for
        example to enter a mount namespace. With `own_ipc` it has a namespace of System V segments, as in a container.
        """
        home = self.home if setgid is None else self._home(f"product/19.0.0/dbhome_{setgid}_setgid", setgid)
        identity: dict[str, Any] = {}
        if user is not None:
            identity = {"user": user, "group": user if group is None else group, "extra_groups": []}
        if memlock is not None or prepare is not None:
            identity["preexec_fn"] = lambda: _prepare(memlock, prepare)
        instance = Instance(self, sid, home, identity)
        if own_ipc:
            instance.has_own_ipc = True
            identity["preexec_fn"] = instance.enter_ipc
        self.instances.append(instance)
        instance.files = [part for part in memory if isinstance(part, MappedFile)]
        instance.start([f"{kind}_pmon_{sid}"], [part.to_make() for part in memory])
        for _ in range(servers):
            instance.server()
        return instance

    def _home(self, name: str, setgid: int | None = None) -> Path:
        """An ORACLE_HOME with the program in it."""
        home = self.base / name
        program = home / "bin" / "oracle"
        if not program.exists():
            program.parent.mkdir(parents=True)
            shutil.copy(_compiled(), program)
            program.chmod(0o755)
            if setgid is not None:
                os.chown(program, -1, setgid)
                program.chmod(0o2755)
        return home


@lru_cache
def _compiled() -> Path:
    """The program of all homes; it is there until this process ends."""
    directory = Path(tempfile.mkdtemp(prefix="pg_hugepages-oracle-"))
    remove_at_exit(directory)
    run("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", directory / "oracle", SOURCE)
    return directory / "oracle"


def _prepare(memlock: int | None, prepare: Callable[[], None] | None) -> None:
    if memlock is not None:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (memlock, memlock))
    if prepare is not None:
        prepare()
