"""A reader is its owner's where it opens a file, and in no other way: the owner, nobody, and another reader try what a process may do to
another. And a kernel that refuses something to a reader makes no answer better.
"""

import ctypes
import os
import pwd
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, silent_fuse
from harness.attacker import USER
from harness.poll import until
from harness.units import MB

pytestmark = pytest.mark.any_major

POSTGRES = pwd.getpwnam("postgres").pw_uid
NOBODY = pwd.getpwnam("nobody").pw_uid
LIBC = ctypes.CDLL(None, use_errno=True)
PIDFD_GETFD, IOPRIO_SET, PTRACE_SEIZE = 438, {"x86_64": 251, "aarch64": 30}[os.uname().machine], 0x4206


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def call(function: Callable[..., int], *arguments: object) -> None:
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), function.__name__)


def copied(pid: int, function: Callable[..., int]) -> None:
    memory = ctypes.create_string_buffer(8)
    piece = Piece(ctypes.addressof(memory), 8)
    call(function, pid, ctypes.byref(piece), ctypes.c_ulong(1), ctypes.byref(piece), ctypes.c_ulong(1), ctypes.c_ulong(0))


ATTACKS: dict[str, Callable[[int], object]] = {
    "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3)),
    "ptrace": lambda pid: call(LIBC.ptrace, PTRACE_SEIZE, pid, 0, 0),
    "process_vm_readv": lambda pid: copied(pid, LIBC.process_vm_readv),
    "process_vm_writev": lambda pid: copied(pid, LIBC.process_vm_writev),
    "pidfd_getfd": lambda pid: call(LIBC.syscall, PIDFD_GETFD, os.pidfd_open(pid), 0, 0),
    "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "ioprio_set": lambda pid: call(LIBC.syscall, IOPRIO_SET, 1, pid, 3 << 13),
    "sched_setscheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "sched_setaffinity": lambda pid: os.sched_setaffinity(pid, {0}),
    "mem": lambda pid: Path(f"/proc/{pid}/mem").open("rb"),
    "environ": lambda pid: Path(f"/proc/{pid}/environ").read_bytes(),
    "fd": lambda pid: os.listdir(f"/proc/{pid}/fd"),
    "cwd": lambda pid: os.readlink(f"/proc/{pid}/cwd"),
    "kill": lambda pid: os.kill(pid, signal.SIGKILL),
    "stop": lambda pid: os.kill(pid, signal.SIGSTOP),
    "pidfd_send_signal": lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL),
}
"""What whoever has the uid of a process may do to it."""


def done_as(uid: int, pid: int) -> list[str]:
    """Which of the attacks succeed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        for name, attack in ATTACKS.items():
            try:
                attack(pid)
                os.write(write, f"{name} ".encode())
            except (PermissionError, FileNotFoundError):
                # Refused, or hidden (hidepid).
                pass
            except OSError as error:
                os.write(write, f"{name}: {error} ".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        told = answers.read().split()
    os.waitpid(child, 0)
    return told


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def status(pid: int) -> dict[str, str]:
    """What the kernel says of a process; nothing of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        lines = []
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def uids(pid: int) -> list[int]:
    return [int(uid) for uid in status(pid).get("Uid", "0 0 0 0").split()]


@contextmanager
def waiting(home: Path, *owners: int) -> Iterator[int]:
    """A command whose readers of these users wait for a file system, and end with it."""
    with ExitStack() as stack:
        for number, owner in enumerate(owners):
            place = home / str(number)
            mount = place / "mount"
            mount.mkdir(parents=True)
            os.chown(mount, owner, -1)
            silent = stack.enter_context(silent_fuse.mounted(mount, owner))
            (place / "PG_VERSION").write_text("15\n")
            (place / "postgresql.conf").write_text(f"include '{silent.file}'\n")
            stack.enter_context(fake(place, size=64 * MB, uid=owner))
        accounts = [word for owner in owners for word in ("--service-account", str(owner))]
        command = sidecar.start("--timeout", "30s", "status", *accounts)
        try:
            yield command.pid
            left = [*children(command.pid)]
        finally:
            command.kill()
            command.wait()
    # A file system that does not answer keeps them until it is gone.
    until("the end of its readers", lambda: not [pid for pid in left if status(pid)])


def readers(command: int, *owners: int) -> list[int]:
    """Those that read as these users, after all that others have read."""
    def found() -> list[int]:
        now = [pid for pid in children(command) if uids(pid)[3] in owners and status(pid).get("CapPrm") == "0" * 16]
        time.sleep(0.3)
        now = [pid for pid in now if status(pid)]
        return now if {uids(pid)[3] for pid in now} == set(owners) and all(status(pid).get("Seccomp") == "2" for pid in now) else []

    return until("the readers", found)


def test_nobody_can_do_anything_to_a_reader(home):
    with fake(home) as process:
        assert set(done_as(USER, process.pid)) >= {"kill", "prlimit", "setpriority", "cwd"}, "the attacks are none"
    with waiting(home, POSTGRES, USER) as command:
        found = readers(command, POSTGRES, USER)
        own = until("all to be nobody's", lambda: [uids(pid)[:3] for pid in children(command) if all(uids(one)[0] for one in children(command))])
        assert all(len(set(numbers)) == 1 for numbers in own) and len({numbers[0] for numbers in own}) == len(own), own
        attackers = [POSTGRES, USER, NOBODY, *(uids(pid)[0] for pid in found)]
        for pid in found:
            others = [uid for uid in attackers if uid != uids(pid)[0]]
            assert [done_as(uid, pid) for uid in others] == [[]] * len(others)
        assert all(status(pid)["State"].startswith(("S", "D")) for pid in found)


def test_what_a_reader_has(home):
    """Its own descriptors, directory, umask, session and environment, and no capability."""
    with waiting(home, USER) as command:
        [pid] = readers(command, USER)
        told = status(pid)
        assert {told[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert (told["NoNewPrivs"], told["Umask"], told["Groups"]) == ("1", "0077", str(USER))
        assert os.readlink(f"/proc/{pid}/cwd") == "/" and os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/environ").stat().st_uid == 0
        kinds = sorted(os.readlink(f"/proc/{pid}/fd/{number}").split(":")[0] for number in os.listdir(f"/proc/{pid}/fd"))
        of_answers = [kind for kind in kinds if kind in ("pipe", "socket")]
        assert of_answers == ["pipe"] * 4 + ["socket"], kinds
        assert all(kind.startswith(("/proc", str(home), "/")) for kind in kinds if kind not in of_answers)


def test_its_user_cannot_limit_what_it_sees(home):
    """prlimit(2) to three files by the owner, as fast as it can, in 20 surveys."""
    with fake(home, size=64 * MB) as process:
        stop = os.fork()
        if not stop:
            os.setgid(USER)
            os.setuid(USER)
            while True:
                for comm in Path("/proc").glob("[0-9]*/comm"):
                    try:
                        if comm.read_text().startswith("hugepage"):
                            resource.prlimit(int(comm.parent.name), resource.RLIMIT_NOFILE, (3, 3))
                            os.kill(int(comm.parent.name), signal.SIGSTOP)
                    except OSError:
                        pass
        try:
            for _ in range(20):
                answer = sidecar.run("status", "--service-account", str(USER), "--format", "json").json()
                assert process.pid in [row["pid"] for row in answer["instances"]], answer["notes"]
                assert not [note for note in answer["notes"] if f"uid {USER} were not read" in note]
        finally:
            os.kill(stop, signal.SIGKILL)
            os.waitpid(stop, 0)


Seen = tuple[str, list[tuple[int, ...]], bool]


def seen(pid: int, *through: str | Path) -> Seen:
    """The verdict, the numbers of the server with this process, and whether anything is noted."""
    answer = sidecar.run("status", "--service-account", str(USER), "--format", "json", through=through)
    if answer.status and not answer.stdout:
        return "unknown", [], True
    told = answer.json()
    rows = [row for row in told["instances"] if row["pid"] == pid]
    names = ("shared_memory", "pages_needed", "recommended_nr_hugepages")
    numbers = [tuple(row[name] for name in names) for row in rows]
    return told["verdict"], numbers, bool(told["notes"] or any(row["notes"] for row in rows))


def is_better(found: Seen, expected: Seen) -> bool:
    """Whether a server is gone, a number lower, the verdict better, or something else without a note. Unknown is none of these."""
    (verdict, numbers, noted), (true_verdict, true_numbers, _) = found, expected
    if verdict == "unknown" or (verdict, numbers) == (true_verdict, true_numbers):
        return False
    order = ["ok", "notice", "warning", "critical"]
    lower = any(number is not None and number < true for row, truth in zip(numbers, true_numbers) for number, true in zip(row, truth))
    return not noted or len(numbers) != len(true_numbers) or lower or order.index(verdict) < order.index(true_verdict)


def with_error(pid: int, call: str, error: str, number: int) -> Seen:
    """Of each process of the command the n-th such call fails."""
    return seen(pid, "strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}")


@contextmanager
def server(home: Path) -> Iterator[subprocess.Popen]:
    (home / "PG_VERSION").write_text("15\n")
    (home / "postgresql.conf").write_text("huge_pages = off\nshared_buffers = 64MB\ninclude_dir 'conf.d'\n")
    (home / "conf.d").mkdir()
    (home / "conf.d/a.conf").write_text("max_connections = 7\n")
    with fake(home, size=64 * MB) as process:
        yield process


@pytest.mark.long
@pytest.mark.parametrize("call, errors", [("openat", ("EIO", "EMFILE", "EPERM", "ESTALE")), ("read", ("EIO", "ENOMEM")), ("statx", ("EIO", "EACCES")),
                                          ("readlinkat", ("EIO", "ENOMEM")), ("getdents64", ("EIO", "ENOMEM")), ("recvmsg", ("EIO",))])
def test_an_error_makes_no_answer_better(home, call, errors):
    """What is then said of the server is the same, or the answer is unknown."""
    with server(home) as process:
        expected = seen(process.pid)
        for error in errors:
            for number in (1, 2, 3, 5, 9):
                found = with_error(process.pid, call, error, number)
                assert not is_better(found, expected), (error, number, found, expected)


ENDS = {"exit_group", "exit", "rt_sigreturn", "execve"}
"""Calls that do not return."""
ONE_BY_ONE = 6
"""So many calls of a kind fail one by one, and of later ones each thirteenth."""


@pytest.mark.long
def test_an_error_at_each_call_of_a_reader(home, tmp_path):
    """All calls that a reader makes of the kernel, by its trace, each with an error that it may have; a minute."""
    with server(home) as process:
        expected = seen(process.pid, "strace", "-ff", "-qq", "-o", tmp_path / "trace")
        assert expected[1]
        calls: Counter[str] = Counter()
        for trace in tmp_path.iterdir():
            lines = trace.read_text().splitlines()
            if any(line.startswith("setfsuid") for line in lines):
                # The union: the most of each kind in one process.
                calls |= Counter(found[1] for line in lines if (found := re.match(r"(\w+)\(", line)))
        assert {"openat", "read", "write", "setfsuid", "recvmsg"} <= set(calls) and sum(calls.values()) > 100, calls
        worse = []
        for call, count in calls.items():
            for number in [number for number in range(1, count + 1) if number <= ONE_BY_ONE or number % 13 == 0]:
                error = ("EIO", "EPERM", "ENOMEM")[number % 3]
                if call not in ENDS:
                    found = with_error(process.pid, call, error, number)
                    worse += [(call, number, error, found)] if is_better(found, expected) else []
        assert not worse, (expected, worse)


def test_a_snapshot_is_no_pipe(home):
    """Nobody is at the other end."""
    os.mkfifo(home / "pipe")
    answer = sidecar.run("status", "--snapshot", home / "pipe")
    assert answer.status == sidecar.UNKNOWN and "not a regular file" in answer.stderr, answer


def test_twelve_users_are_a_line(home):
    """Of uids without a name one user has any number. Processes of others that do not count are named beside them."""
    script = home / "server.py"
    script.write_text("import ctypes, sys, time; ctypes.CDLL(None).prctl(15, b'postgres'); print('ready', flush=True); time.sleep(600)")
    with ExitStack() as stack:
        for uid in [*range(300_000, 300_012), NOBODY]:
            process = stack.enter_context(subprocess.Popen([sys.executable, script], user=uid, group=uid, extra_groups=[],
                                                           stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout.readline() == "ready\n"
        told = sidecar.run("status", "--format", "json").json()["strangers"]
        found = [one["uid"] for one in told]
    assert NOBODY in found and len([uid for uid in found if 300_000 <= uid < 300_012]) == 1, found
