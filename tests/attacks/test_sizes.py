"""A host with as much of everything as a host has, most of it under names that are as long as the kernel lets them be: what `watch` and
`check` take of memory, tasks and output, in control groups with the limits of the packaged unit.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_strangers import CGROUPS

from harness import sidecar
from harness.attacker import USER
from harness.poll import until
from harness.processes import kill_group
from harness.units import KB, MB

pytestmark = [pytest.mark.any_major, pytest.mark.long]

SERVERS, CONTAINERS, USERS, PROCESSES = 200, 60, 500, 5000
ACCOUNTS = range(310_000, 310_500)
"""Users that count, each with a server."""
LONG = 3_980
"""The bytes of a data directory: a file in it has a path, too."""
READERS = 16
UNIT = Path(__file__).parents[2] / "packaging/systemd/hugepage-sidecar.service"
HOST = r"""
import ctypes, mmap, os, sys, time
home, groups, user = sys.argv[1], sys.argv[2], int(sys.argv[3])
servers, containers, accounts, users, processes, long = map(int, sys.argv[4:])
libc = ctypes.CDLL(None)
kept = []

def started(child):
    if not os.fork():
        try:
            child()
            os.write(told, b"1")
            time.sleep(600)
        finally:
            os._exit(0)

def as_user(uid):
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)

def server(uid, settings):
    for file, text in (("PG_VERSION", "15\n"), ("postgresql.conf", settings)):
        with open(file, "w") as opened:
            opened.write(text)
    os.chown(".", uid, uid)
    as_user(uid)
    libc.prctl(15, b"postgres")
    # As after exec: else its files in /proc are root's.
    libc.prctl(4, 1)
    # A title is what stands where the arguments are.
    address = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45])
    title = b"postgres\0".ljust(len(open("/proc/self/cmdline", "rb").read()), b"\0")
    ctypes.memmove(address, title, len(title))
    kept.append(mmap.mmap(-1, 64 << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x4000))

def long_named(number):
    os.chdir(home)
    name = f"{number:03}"
    while len(os.getcwd()) + 250 < long:
        os.makedirs("d" * 240, exist_ok=True)
        os.chdir("d" * 240)
    os.mkdir(name.ljust(long - len(os.getcwd()) - 1, "x"))
    os.chdir(name.ljust(long - len(os.getcwd()) - 1, "x"))
    server(user, f"include_if_exists '{'y' * 200}.conf'\nshared_buffers = 64MB\n")

def contained(number):
    os.mkdir(f"{home}/container-{number}")
    os.chdir(f"{home}/container-{number}")
    group = f"{groups}/{number:064x}"
    os.mkdir(group)
    with open(f"{group}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
    server(100_000 + number, "shared_buffers = 64MB\n")

def of_account(number):
    os.mkdir(f"{home}/account-{number}")
    os.chdir(f"{home}/account-{number}")
    server(310_000 + number, "shared_buffers = 64MB\n")

def stranger(number):
    as_user(300_000 + number)
    libc.prctl(15, b"postgres")

come, told = os.pipe()
others = processes - servers - containers - accounts - users
for count, child in ((servers, long_named), (containers, contained), (accounts, of_account), (users, stranger), (others, lambda _: None)):
    for number in range(count):
        started(lambda: child(number))
count = 0
while count < processes:
    count += len(os.read(come, 1000))
print("ready", flush=True)
time.sleep(600)
"""


def emptied(groups: Path) -> bool:
    """Whether a control group and those below it are gone: one is busy until the kernel is done with its last process."""
    try:
        for group in [*groups.iterdir(), groups]:
            if group.is_dir():
                group.rmdir()
    except OSError:
        return False
    return True


@contextmanager
def made(home: Path, servers: int, containers: int, accounts: int, users: int, processes: int) -> Iterator[None]:
    groups = CGROUPS / "docker"
    if groups.exists():
        pytest.skip("this host has containers")
    groups.mkdir()
    home.chmod(0o755)
    script = home / "host.py"
    script.write_text(HOST)
    numbers = (USER, servers, containers, accounts, users, processes, LONG)
    process = subprocess.Popen([sys.executable, script, home, groups, *map(str, numbers)], stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        kill_group(process)
        until("the end of the containers", lambda: emptied(groups))


@pytest.fixture
def host(home) -> Iterator[Path]:
    """It takes some 20 s to make."""
    with made(home, SERVERS, CONTAINERS, 0, USERS, PROCESSES):
        yield home


def of_unit(name: str) -> int:
    """A limit of the packaged unit: a number, or bytes."""
    number, unit = re.search(rf"^{name}=(\d+)(M?)$", UNIT.read_text(), re.MULTILINE).groups()
    return int(number) * (MB if unit else 1)


@contextmanager
def unit(tasks: int, memory_max: int) -> Iterator[tuple[list[Path], Path]]:
    """Control groups with these limits, and the file of the most memory that was taken. The kernel's own of /proc counts, and is given
    back where it is short: so what a program needs is what it gets by with."""
    if Path("/sys/fs/cgroup/memory").is_dir():
        memory, pids = (Path(f"/sys/fs/cgroup/{name}/attack-unit") for name in ("memory", "pids"))
        most, peak = "memory.limit_in_bytes", "memory.max_usage_in_bytes"
    else:
        (CGROUPS / "cgroup.subtree_control").write_text("+memory +pids")
        memory = pids = CGROUPS / "attack-unit"
        most, peak = "memory.max", "memory.peak"
    groups = sorted({memory, pids})
    for group in groups:
        group.mkdir()
    try:
        (memory / most).write_text(str(memory_max))
        (pids / "pids.max").write_text(str(tasks))
        yield groups, memory / peak
    finally:
        for group in groups:
            until("the end of the unit", lambda group=group: emptied(group))


JOINED = """import os, sys
for group in sys.argv[1].split(":"):
    with open(f"{group}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def within(groups: list[Path]) -> list[str]:
    """The command that runs another one in these control groups."""
    return [sys.executable, "-c", JOINED, ":".join(map(str, groups))]


def readers(command: int) -> int:
    """How many processes of a command have a user of their own and no capability."""
    found = 0
    for pid in Path(f"/proc/{command}/task/{command}/children").read_text().split():
        try:
            told = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        found += bool(re.search(r"^Uid:\t(?!0\t)", told, re.MULTILINE) and re.search(r"^CapPrm:\t0+$", told, re.MULTILINE))
    return found


COUNTED = ("--service-account", str(USER))


def seen(text: str) -> set[str]:
    """The names of servers among the metrics."""
    return set(re.findall(r'^hugepage_verdict\{kind="postgresql",name="([^"]*)"', text, re.MULTILINE))


@dataclass(frozen=True)
class Watched:
    """What `watch` in the unit's control groups said in its first survey, which logs the start of each server."""

    metrics: str
    log: str
    notes: list[str]


def watched(directory: Path, *arguments: str) -> Watched:
    metrics, log, json_file = directory / "metrics.prom", directory / "log", directory / "status.json"
    most = 0
    assert of_unit("MemoryMax") > 48 * MB
    with unit(of_unit("TasksMax"), 48 * MB) as (groups, peak), log.open("wb") as output:
        command = sidecar.command(*arguments, "--state-dir", directory / "state", "--textfile", metrics, "--json", json_file,
                                  through=within(groups))
        begun = time.monotonic()
        watch = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        while watch.poll() is None:
            most = max(most, readers(watch.pid))
        seconds, memory = time.monotonic() - begun, int(peak.read_text())
    print(f"watch: {memory / MB:.1f} MB, {seconds:.1f} s, log {log.stat().st_size} bytes, metrics {metrics.stat().st_size} bytes, "
          f"{most} readers at a time")
    assert watch.returncode >= 0 and most <= READERS
    return Watched(metrics.read_text(), log.read_text(), json.loads(json_file.read_text())["notes"])


def check(*arguments: str) -> None:
    _, used = sidecar.run_measured("--timeout", "60s", "check", *arguments)
    print(f"check: {used.peak_memory / MB:.1f} MB, {used.seconds:.1f} s")
    assert used.peak_memory <= 25 * MB


def test_a_large_host(host, tmp_path):
    """A minute, most of it to make the host."""
    told = watched(tmp_path, "--timeout", "60s", "watch", "--once", *COUNTED)
    names = seen(told.metrics)
    assert len(names) == SERVERS + CONTAINERS, (len(names), told.log[-2000:])
    assert max(map(len, names)) <= 255 + len(" in kubepods") + 255
    assert len(told.log) <= 200 * KB and len(told.metrics) <= 20 * KB * len(names)
    check(*COUNTED)


def test_many_accounts(home, tmp_path):
    """Each has a reader of its own. Who had no time is named."""
    accounts = [word for uid in ACCOUNTS for word in ("--service-account", str(uid))]
    with made(home, 0, 0, len(ACCOUNTS), 0, len(ACCOUNTS)):
        told = watched(tmp_path, "watch", "--once", *accounts)
        names = {int(name.rpartition("-")[2]) + ACCOUNTS[0] for name in seen(told.metrics)}
        unread = {int(uid) for note in told.notes for uid in re.findall(r"the files of uid (\d+) were not read", note)}
        print(f"{len(names)} seen, {len(unread)} named as not seen")
        assert names | unread == set(ACCOUNTS), (len(names), told.notes[-3:])
        check(*accounts)


def test_few_tasks(host, tmp_path):
    """A fork that fails waits for the end of another one: nobody is gone."""
    with unit(12, of_unit("MemoryMax")) as (groups, _):
        answer = sidecar.run("--timeout", "60s", "metrics", *COUNTED, through=within(groups))
    names = seen(answer.stdout)
    assert len(names) == SERVERS + CONTAINERS, answer.stderr[-2000:]
