"""Who is no service account makes processes that look like servers: each is a line, and changes nothing."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar
from harness.attacker import USER
from harness.poll import until
from harness.traces import made_directory
from harness.units import GB, MB

pytestmark = pytest.mark.any_major

ORACLE, WWW_DATA = 54321, 33
ACCOUNT = ("--service-account", str(ORACLE))
"""The owner of the home, as a name would tell it on a host of Oracle."""
ORATAB = Path("/etc/oratab")
CGROUPS = next(path for path in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")) if (path / "cgroup.procs").exists())
GROUP = CGROUPS / "lxc.payload.attack"
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
"""The number before that of the next process."""
MEMORY = """
import ctypes, mmap, sys, time
memory = mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x4000)
ctypes.CDLL(None).prctl(15, sys.argv[2].encode())
time.sleep(600)
"""


@pytest.fixture
def place(root) -> Iterator[Path]:
    """A directory that everybody may search, with an ORACLE_HOME that oratab has: its program sleeps, and is setuid."""
    directory = Path(f"/opt/pg_hugepages-attack-{os.getpid()}")
    program = directory / "home/bin/oracle"
    program.parent.mkdir(parents=True)
    shutil.copy("/bin/sleep", program)
    for path in (directory / "home", program.parent, program):
        os.chown(path, ORACLE, ORACLE)
    program.chmod(0o6755)
    (directory / "of_user").mkdir()
    os.chown(directory / "of_user", USER, USER)
    if ORATAB.exists():
        pytest.skip("this host has an oratab")
    ORATAB.write_text(f"REAL:{directory}/home:N\n")
    yield directory
    ORATAB.unlink()
    shutil.rmtree(directory)


@pytest.fixture
def pretend(place) -> Iterator[Callable]:
    """A process of `uid` with the title `title`, in the control group of `group`, once it has the name `name`: by default the program's."""
    running: list[subprocess.Popen] = []

    def pretend(title: str, program: str | Path, *arguments: str | Path, uid: int = USER, group: Path | None = None,
                name: str | None = None) -> int:
        def join() -> None:
            if group:
                (group / "cgroup.procs").write_text(str(os.getpid()))
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        running.append(subprocess.Popen([title, *map(str, arguments)], executable=program, preexec_fn=join, cwd=place,
                                        stdin=subprocess.DEVNULL, start_new_session=True))
        pid = running[-1].pid
        until("the name", lambda: Path(f"/proc/{pid}/comm").read_text().strip() == (name or Path(program).name))
        return pid
    yield pretend
    for process in running:
        process.kill()
        process.wait()


def look() -> dict:
    """What root sees, without what moves by itself."""
    status = sidecar.run("status", *ACCOUNT, "--format", "json").json()
    size = sidecar.run("size", *ACCOUNT, "--format", "json").json()
    return {"instances": [{name: value for name, value in row.items() if name != "page_tables_total"} for row in status["instances"]],
            "verdict": status["verdict"], "check": sidecar.run("check", *ACCOUNT).status,
            "recommended": [pool["recommended_nr_hugepages"] for pool in size["pools"]],
            "down": [one for one in size["not_counted"] if one["kind"] != "stranger"],
            "strangers": {one["pid"]: one["reason"] for one in status["strangers"]}}


def as_www_data(pretend, place) -> str:
    pretend("postgres", sys.executable, "-c", MEMORY, 17 * GB, "postgres", uid=WWW_DATA, name="postgres")
    return "runs as www-data"


def setuid_program_as_pmon(pretend, place) -> str:
    """S4: the kernel gives it the powers of the owner; who has started it is its real user."""
    pretend("ora_pmon_GHOST", place / "home/bin/oracle", "600")
    return f"runs as uid {USER}"


def mount_over_the_home(pretend, place) -> str:
    """S3: the text of /proc/PID/exe is the path of the home, and the program another one."""
    own = place / "of_user"
    shutil.copy(Path(sys.executable).resolve(), own / "oracle")
    script = f'mount --bind {own} {place}/home/bin && exec -a ora_pmon_FAKE {place}/home/bin/oracle -c "$0" {17 * GB} ora_pmon_FAKE'
    pretend("unshare", "/usr/bin/unshare", "-Urm", "bash", "-c", script, MEMORY, name="ora_pmon_FAKE")
    return f"runs as uid {USER}"


def in_a_container(pretend, place) -> str:
    """S5: a user of a whole system in a container is user 0 of a namespace that it has made."""
    GROUP.mkdir()
    pretend("unshare", "/usr/bin/unshare", "-Ur", "bash", "-c", f'exec -a postgres {sys.executable} -c "$0" {17 * GB} postgres', MEMORY,
            group=GROUP, name="postgres")
    return f"is in a system container, whose users are not the host's, as uid {USER}"


@pytest.mark.parametrize("attack", [as_www_data, setuid_program_as_pmon, mount_over_the_home, in_a_container])
def test_a_stranger_is_a_line(pretend, place, attack):
    before = look()
    try:
        why = attack(pretend, place)
        after = look()
    finally:
        if GROUP.exists():
            for pid in (GROUP / "cgroup.procs").read_text().split():
                (CGROUPS / "cgroup.procs").write_text(pid)
            GROUP.rmdir()
    new = {pid: found for pid, found in after.pop("strangers").items() if pid not in before["strangers"]}
    before.pop("strangers")
    assert after == before
    assert list(new.values()) == [why]


def test_an_owner_of_files_is_no_account(pretend, place):
    """T3: postgres may write to /etc/postgresql, and a line of oratab names any home: neither makes a service account."""
    users = place / "users"
    (users / "www-data").mkdir(parents=True)
    os.chown(users / "www-data", WWW_DATA, WWW_DATA)
    link = Path("/etc/postgresql/98")
    with made_directory(link.parent):
        link.symlink_to(users)
        try:
            pretend("postgres", sys.executable, "-c", MEMORY, 17 * GB, "postgres", uid=WWW_DATA, name="postgres")
            pretend("ora_pmon_REAL", place / "home/bin/oracle", "600", uid=ORACLE)
            status = sidecar.run("status", "--format", "json").json()
        finally:
            link.unlink()
    reasons = {one["reason"] for one in status["strangers"]}
    assert reasons >= {"runs as www-data", f"runs as uid {ORACLE}"}, status["strangers"]
    assert "REAL" not in [row["name"] for row in status["instances"]]


def test_a_stopped_cluster_stays_in_sight(new_cluster, pretend, place):
    """S6: a process postgres on a file system of its own that lies over the data directory."""
    server = new_cluster(shared_buffers="16MB")
    for path in (server.root, server.data):
        path.chmod(0o755)

    def need() -> dict:
        out = sidecar.run("size", "--postgresql-data", server.data, "--format", "json").json()
        needs = {need["instance"]: need for pool in out["pools"] for need in pool["needs"]}
        return needs[str(server.data)]
    before = need()
    script = f'mount -t tmpfs none {server.data} && cd {server.data} && exec -a postgres {sys.executable} -c "$0" {16 * MB} postgres -D {server.data}'
    pretend("unshare", "/usr/bin/unshare", "-Urm", "bash", "-c", script, MEMORY, name="postgres")
    assert need() == before and not before["is_running"] and before["pages_needed"] > 0


def sessions() -> int:
    [row] = [row for row in sidecar.run("status", *ACCOUNT, "--format", "json").json()["instances"] if row["name"] == "REAL"]
    return row["processes"]


def test_sessions_of_others_are_none_of_an_instance(pretend, place):
    """S7: by the title alone, by the setuid program, and with another program of the owner's."""
    program = place / "home/bin/oracle"
    pretend("ora_pmon_REAL", program, "600", uid=ORACLE)
    pretend("ora_dbw0_REAL", program, "600", uid=ORACLE)
    before = sessions()
    assert before == 2
    # Titles are one word each here; background processes have a title of one.
    pretend("ora_lgwr_REAL", "/bin/sleep", "600")
    pretend("ora_ckpt_REAL", program, "600")
    pretend("ora_smon_REAL", "/bin/sleep", "600", uid=ORACLE)
    pretend("ora_pmon_REAL", "/bin/sleep", "600")
    assert sessions() == before


def test_a_number_that_another_user_gets_meanwhile(home, tmp_path):
    """A server ends while root looks at it, and a process of the attacker has its number when its memory is read."""
    postgres = pwd.getpwnam("postgres").pw_uid
    with ExitStack() as stack:
        server = stack.enter_context(fake(home, size=64 * MB, uid=postgres))
        pid, output, trace = server.pid, tmp_path / "out", tmp_path / "trace"
        delay = ["strace", "-f", "-qq", "-o", str(trace), "-P", f"/proc/{pid}/limits", "-e", "trace=open,openat",
                 "-e", "inject=open,openat:delay_enter=2000000:when=1"]
        with output.open("w") as out:
            look = subprocess.Popen(sidecar.command("status", "--format", "json", through=delay), stdout=out, stdin=subprocess.DEVNULL)
            until("the look at its limits", lambda: trace.exists() and trace.stat().st_size)
            server.kill()
            server.wait()
            other = None
            while other is None or other.pid != pid:
                LAST_PID.write_text(str(pid - 1))
                other = stack.enter_context(fake(home, size=17 * GB))
            look.wait()
    answer = json.loads(output.read_text())
    assert not [row for row in answer["instances"] if row["pid"] == pid], answer["instances"]
