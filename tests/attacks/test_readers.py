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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, silent_fuse
from harness.attacker import USER
from harness.poll import until
from harness.strace import COMMANDS_AT_A_TIME, failing
from harness.units import GB, MB

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


@dataclass(frozen=True)
class Told:
    """What a command tells: its verdict, the numbers by name, of which more is worse, and whether it says that something was not read.
    None is unknown."""

    verdict: int | None
    numbers: dict[str, int | None]
    is_noted: bool


VERDICTS = {"ok": 0, "notice": 1, "warning": 2, "critical": 3}
OUTLOOKS = {"hugetlb": 0, "mixed": 1, "base": 2, "fails": 3}
COUNTED = ("--service-account", str(USER))


def of_status(home: Path, pid: int, answer: sidecar.Answer) -> Told:
    told = answer.json()
    numbers = {}
    for row in told["instances"]:
        if row["pid"] == pid:
            numbers = {name: row[name] for name in ("shared_memory", "pages_needed", "recommended_nr_hugepages")}
            numbers |= {"verdict": VERDICTS[row["verdict"]], "restart_outlook": OUTLOOKS.get(row["restart_outlook"])}
    return Told(VERDICTS.get(told["verdict"]), numbers, bool(told["notes"] or any(row["notes"] for row in told["instances"])))


def of_size(home: Path, pid: int, answer: sidecar.Answer) -> Told:
    told = answer.json()
    numbers = {f"pool {pool['page_size']}": pool["recommended_nr_hugepages"] for pool in told["pools"]}
    needs = {need["instance"]: need["pages_needed"] for pool in told["pools"] for need in pool["needs"]}
    needs |= {one["instance"]: 0 if one["is_known"] else None for one in told["not_counted"]}
    numbers |= {name.replace(f"process {pid}", str(home)): pages for name, pages in needs.items()}
    return Told(0 if answer.status == sidecar.OK else None, numbers, bool(told["notes"] or told["not_counted"]))


def of_check(home: Path, pid: int, answer: sidecar.Answer) -> Told:
    return Told(None if answer.status == sidecar.UNKNOWN else answer.status, {}, True)


def of_metrics(home: Path, pid: int, answer: sidecar.Answer) -> Told:
    samples = dict(re.findall(r"^(\S.*) ([-\d.e+]+)$", answer.stdout, re.MULTILINE))
    # It has no other name if its directory is not seen.
    own = next((own for name in (home, f"process {pid}") if "hugepage_verdict" + (own := f'{{kind="postgresql",name="{name}"') + "}" in samples), "")
    numbers = {name: float(samples[name + own + "}"]) if name + own + "}" in samples else None
               for name in ("hugepage_verdict", "hugepage_pages_needed", "hugepage_recommended_nr_hugepages")}
    for name in ("hugepage_restart_outlook", "hugepage_crash_outlook"):
        numbers[name] = next((worse for word, worse in OUTLOOKS.items() if samples.get(f'{name}{own},{name}="{word}"}}') == "1"), None)
    uninspected = int(samples["hugepage_uninspected_instances"])
    return Told(None if uninspected else 0, numbers if own else {}, bool(uninspected))


COMMANDS: dict[str, Callable[[Path, int, sidecar.Answer], Told]] = {
    "status --format json": of_status, "size --format json": of_size, "check": of_check, "metrics": of_metrics}
"""What each of them tells; `size` also asks the server's program, and looks for what does not run."""


def told(home: Path, pid: int, command: str, *through: str | Path) -> Told:
    more = ("--postgresql-data", home / "stopped") if command.startswith("size") else ()
    answer = sidecar.run(*command.split(), *more, *COUNTED, through=through)
    if not answer.stdout or command == "metrics" and "# EOF" not in answer.stdout:
        return Told(None, {}, True)
    return COMMANDS[command](home, pid, answer)


def is_better(found: Told, expected: Told) -> bool:
    """Whether a server is gone, a number lower, the verdict better, or something else without a note. Where the host's verdict is unknown,
    fewer servers may be seen and counted, and the verdict on one be that little of it is seen; but no number of a server is lower."""
    lower = [name for name, true in expected.numbers.items() if None not in (true, number := found.numbers.get(name)) and number < true]
    if found.verdict is None and expected.verdict is not None:
        return any("verdict" not in name and not name.startswith("pool ") for name in lower)
    is_gone = bool(expected.numbers.keys() - found.numbers)
    is_other = (found.verdict, found.numbers) != (expected.verdict, expected.numbers)
    better = expected.verdict is not None and found.verdict < expected.verdict
    return bool(lower) or is_gone or better or is_other and not found.is_noted


def with_error(home: Path, pid: int, command: str, call: str, error: str, number: int) -> Told:
    """Of each process of the command the n-th such call fails."""
    return told(home, pid, command, *failing(call, error, number))


@contextmanager
def server(home: Path) -> Iterator[subprocess.Popen]:
    """One that runs and one that does not. Whoever does not see all files of the first takes huge pages for turned off."""
    for directory in (home, home / "stopped"):
        (directory / "conf.d").mkdir(parents=True)
        (directory / "PG_VERSION").write_text("15\n")
        (directory / "postgresql.conf").write_text("huge_pages = off\nshared_buffers = 2GB\ninclude_dir 'conf.d'\n")
    (home / "conf.d/a.conf").write_text("max_connections = 7\ninclude 'b'\n")
    (home / "conf.d/b").write_text("huge_pages = try\n")
    subprocess.run(["chown", "-R", f"{USER}:{USER}", home], check=True)
    with fake(home, size=2 * GB) as process:
        yield process


ERRORS = ("EIO", "EACCES", "ENOMEM", "EMFILE", "EINTR", "ESTALE", "ELOOP", "EPERM")
"""What the kernel may answer where something is."""
ENDS = {"exit_group", "exit", "rt_sigreturn", "execve"}
"""Calls that do not return."""
ONE_BY_ONE = 6
"""So many calls of a kind fail one by one, and of later ones each thirteenth."""


@pytest.fixture
def calls(home, tmp_path) -> Iterator[tuple[int, Counter[str]]]:
    """A server, and all calls that a reader makes of the kernel, by its trace: the most of each kind in one process."""
    with server(home) as process:
        told(home, process.pid, "size --format json", "strace", "-ff", "-qq", "-o", tmp_path / "trace")
        found: Counter[str] = Counter()
        for trace in tmp_path.iterdir():
            lines = trace.read_text().splitlines()
            if any(line.startswith("setfsuid") for line in lines):
                found |= Counter(call[1] for line in lines if (call := re.match(r"(\w+)\(", line)))
        assert {"openat", "read", "write", "setfsuid", "recvmsg", "fstatfs"} <= set(found) and sum(found.values()) > 100, found
        yield process.pid, Counter({call: count for call, count in found.items() if call not in ENDS})


def compared(home: Path, pid: int, errors: Iterable[tuple[str, str, str, int]]) -> None:
    expected = {command: told(home, pid, command) for command in COMMANDS}
    assert expected["status --format json"].verdict == VERDICTS["warning"] and expected["metrics"].numbers
    assert expected["size --format json"].verdict == 0 and str(home / "stopped") in expected["size --format json"].numbers
    with ThreadPoolExecutor(COMMANDS_AT_A_TIME) as threads:
        answers = threads.map(lambda one: (one, with_error(home, pid, *one)), errors)
        worse = [(one, found) for one, found in answers if is_better(found, expected[one[0]])]
    assert not worse


@pytest.mark.long
def test_each_error_of_each_kind_of_call(home, calls):
    """What is then said of the server is the same, or unknown."""
    pid, kinds = calls
    numbers = {call: (1, 3, 9) for call in ("openat", "read", "statx", "readlinkat", "fstatfs", "getdents64", "recvmsg")}
    compared(home, pid, ((list(COMMANDS)[(place + which) % len(COMMANDS)], call, error, number) for call, count in kinds.items()
                         for place, number in enumerate(numbers.get(call, (1,))) for which, error in enumerate(ERRORS) if number <= count))


@pytest.mark.long
def test_an_error_at_each_call_of_a_reader(home, calls):
    """Each call fails, with one error after the other and before one command after the other."""
    pid, kinds = calls
    numbers = ((call, number) for call, count in kinds.items() for number in range(1, count + 1)
               if number <= ONE_BY_ONE or number % 13 == 0)
    compared(home, pid, ((list(COMMANDS)[at % len(COMMANDS)], call, ERRORS[at % 7], number) for at, (call, number) in enumerate(numbers)))


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
