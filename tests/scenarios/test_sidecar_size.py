"""`hugepage-sidecar size` names the pool that all of a host takes once all of it runs, and nothing that does not fit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import kernel, sidecar, smaps
from harness.cluster import StartFailed, rows
from harness.controllers import control_group
from harness.kernel import meminfo
from harness.oracle import SysV, alert_log
from harness.own_etc import through_etc
from harness.processes import mounts
from harness.sidecar import CRITICAL, OK, UNKNOWN, WARNING
from harness.strace import COMMANDS_AT_A_TIME, failing
from harness.traces import made_directory
from harness.units import GB, KB, MB, pages

pytestmark = pytest.mark.any_major

HUGE = 2 * MB
EXTRA = 4
"""What an Oracle instance may take beyond its SGA; see docs/oracle-reference.md."""


@pytest.fixture
def sized(tmp_path) -> Callable[..., dict[str, Any]]:
    """The answer, and of it the pool of 2 MB pages with its needs by name."""
    def size(*arguments: str | Path, **options: Any) -> dict[str, Any]:
        answer = sidecar.run("size", "--format", "json", "--state-dir", tmp_path, *arguments, **options)
        assert answer.stderr == "", answer
        out = answer.json()
        out["status"] = answer.status
        out["pool"], = (pool for pool in out["pools"] if pool["page_size"] == HUGE)
        out["needs"] = {need["instance"]: need for need in out["pool"]["needs"]}
        out["why"] = {one["instance"]: one["reason"] for one in out["not_counted"]}
        return out
    return size


def test_clusters_that_are_down(new_cluster, pool, sized):
    """The number set as it is named, and all started: every cluster is in huge pages, and no page is left over."""
    servers = [new_cluster(shared_buffers=size, huge_pages=True) for size in ("40MB", "64MB")]
    off = new_cluster(huge_pages=False)
    borrowed = pool(HUGE, 0)
    before = borrowed.numbers()
    data = [argument for server in (*servers, off) for argument in ("--postgresql-data", server.data)]
    elsewhere = sized()["pool"]["recommended_nr_hugepages"]
    out = sized(*data)
    wanted = {str(server.data): server.pages_needed(HUGE) for server in servers}
    assert {name: out["needs"][name]["pages_needed"] for name in wanted} == wanted
    assert not any(out["needs"][name]["is_running"] or out["needs"][name]["pages_held"] for name in wanted)
    assert out["why"][str(off.data)] == "huge_pages = off"
    assert out["pool"]["recommended_nr_hugepages"] == elsewhere + sum(wanted.values())
    borrowed.resize(before.held + sum(wanted.values()))
    for server in servers:
        server.start()
        assert smaps.main_mapping(server.postmaster).page_size == HUGE
    assert borrowed.numbers().available == 0
    out = sized(*data)
    for server in servers:
        need = out["needs"][str(server.data)]
        assert need["is_running"] and need["pages_needed"] == need["pages_held"]
        assert need["pages_needed"] == pages(smaps.main_mapping(server.postmaster).length, HUGE)


def fill_pages(server, page_size: int) -> int:
    """Set wal_buffers so that the main segment fills its pages; how many these are."""
    unit, buffers = 8 * KB, 512
    for _ in range(20):
        server.conf(wal_buffers=str(buffers))
        counted = server.pages_needed(unit)
        size = (counted - (1 if server.install.major <= 18 else 0)) * unit
        if size % page_size == 0:
            return size // page_size
        buffers += -size % page_size // unit
    raise AssertionError(f"{buffers} wal_buffers do not fill pages of {page_size} bytes")


def test_a_segment_that_fills_its_pages(new_cluster, pool, sized):
    """The exact number, where the program of majors up to 18 counts one page too many."""
    server = new_cluster(shared_buffers="32MB", huge_pages=True)
    wanted = fill_pages(server, HUGE)
    borrowed = pool(HUGE, 0)
    need = sized("--postgresql-data", server.data)["needs"][str(server.data)]
    assert (need["pages_needed"], need["is_running"]) == (wanted, False)
    borrowed.resize(borrowed.numbers().held + wanted)
    server.start()
    assert smaps.main_mapping(server.postmaster).page_size == HUGE
    assert borrowed.numbers().available == 0


def test_a_cluster_that_is_only_planned(new_cluster):
    """What is said before there is a server is what one with these settings needs."""
    server = new_cluster(shared_buffers="64MB", max_connections=300)
    for name in ("wal_buffers", "max_wal_senders", "max_worker_processes"):
        server.conf(**{name: None})
    major = server.install.major
    answer = sidecar.run("size", "--shared-buffers", "64MB", "--max-connections", "300", "--major", str(major), "--format", "json")
    assert answer.status in (OK, UNKNOWN), answer
    if answer.status == UNKNOWN:
        assert f"version {major}" in answer.stderr, "no package has this server"
        return
    needed = {size["page_size"]: size["pages_needed"] for size in answer.json()["pages"]}
    assert needed[HUGE] == server.pages_needed(HUGE)


def test_the_limits_of_a_pod_hold_a_real_server(new_cluster, pool):
    """A server that is only planned, started within the printed limits, with a sort in each of its sessions."""
    server = new_cluster(shared_buffers="64MB", max_connections=60, huge_pages="on")
    for name in ("wal_buffers", "max_wal_senders", "max_worker_processes"):
        server.conf(**{name: None})
    major = server.install.major
    answer = sidecar.run("size", "--shared-buffers", "64MB", "--max-connections", "60", "--major", str(major), "--format", "kubernetes")
    if answer.status == UNKNOWN:
        assert f"version {major}" in answer.stderr, "no package has this server"
        return
    limits = yaml.safe_load(answer.stdout)["resources"]["limits"]
    assert limits.keys() == {"hugepages-2Mi", "memory"}
    huge, memory = (int(limits[name].removesuffix("Mi")) * MB for name in ("hugepages-2Mi", "memory"))
    pool(HUGE, huge // HUGE)
    is_v1 = any(mount.fstype == "cgroup" and mount.point.name == "memory" for mount in mounts())
    of_memory = {"memory.limit_in_bytes" if is_v1 else "memory.max": memory}
    with control_group(**{"hugetlb.2MB.max": huge, "hugetlb.2MB.rsvd.max": huge, **of_memory}) as group:
        server.start(within=group)
        assert smaps.main_mapping(server.postmaster).landed_in == "hugetlb"
        sessions = [server.connect() for _ in range(50)]
        for session in sessions:
            [row] = rows(session, "SELECT count(*) FROM (SELECT * FROM generate_series(1, 200000) AS n ORDER BY -n) AS sorted")
            assert row["count"] == 200000
        assert all(rows(session, "SELECT 1 AS one") == [{"one": 1}] for session in sessions), "none was killed"
        server.stop()
        group.file("hugetlb.2MB.rsvd.max").write_text(str(huge - HUGE))
        with pytest.raises(StartFailed, match="could not map anonymous shared memory"):
            server.start(within=group)


def test_another_page_size_on_disk(new_cluster, pool, sized):
    """What runs in one pool and starts in another one next counts in both."""
    server = new_cluster(shared_buffers="40MB")
    wanted = server.pages_needed(HUGE)
    pool(HUGE, wanted)
    server.start()
    server.conf(huge_page_size="1GB")
    out = sized()
    assert out["needs"][str(server.data)]["pages_needed"] == wanted
    gigantic, = (row for row in out["pools"] if row["page_size"] == GB)
    assert [(need["instance"], need["pages_needed"]) for need in gigantic["needs"]] == [(str(server.data), 1)]
    assert "1 page of 1 GB" in sidecar.run("size").stdout


def test_the_options_of_the_last_start(new_cluster, sized):
    """The next start need not have them: neither their need is its own, nor is it known to be that of the files."""
    server = new_cluster(shared_buffers="1GB")
    wanted = server.pages_needed(HUGE)
    (server.data / "postmaster.opts").write_text('/usr/bin/postgres "-D" "/x" "-c" "port=5555"\n')
    assert sized("--postgresql-data", server.data)["needs"][str(server.data)]["pages_needed"] == wanted
    (server.data / "postmaster.opts").write_text('/usr/bin/postgres "-D" "/x" "-c" "shared_buffers=16MB"\n')
    out = sized("--postgresql-data", server.data)
    assert str(server.data) not in out["needs"] and out["status"] == UNKNOWN
    assert "shared_buffers" in out["why"][str(server.data)]


def test_in_another_pid_namespace(new_cluster, sized):
    """It shows no process of the host: no number is one for all of it."""
    server = new_cluster().start()
    answer = sidecar.run("size", through=["unshare", "--pid", "--fork", "--mount-proc"])
    assert answer.status == UNKNOWN and "Run this on the host" in answer.stdout and "all of the host" not in answer.stdout, answer
    answer = sidecar.run("apply", "--recommended", "--dry-run", through=["unshare", "--pid", "--fork", "--mount-proc"])
    assert answer.status == UNKNOWN and "Run this on the host" in answer.stderr, answer
    assert str(server.data) in sized()["needs"]


CALLS = [*range(1, 40, 3), *range(41, 200, 17)]


@pytest.mark.parametrize("error,calls", [("EMFILE", CALLS[::3]), ("ENFILE", CALLS[1::3]), ("ENOMEM", CALLS[2::3]), ("EACCES", CALLS)],
                         ids=["EMFILE", "ENFILE", "ENOMEM", "EACCES"])
def test_what_cannot_be_opened_is_not_absent(new_cluster, error, calls):
    """Whichever call has no answer, the number is that of all servers, or none. The first three errors are one to the program, and share
    the calls."""
    server = new_cluster(shared_buffers="48MB").start()
    command = ["size", "--format", "json"]

    def numbers(answer: sidecar.Answer) -> list:
        return [(pool["recommended_nr_hugepages"], sorted(need["instance"] for need in pool["needs"])) for pool in answer.json()["pools"]]
    whole = sidecar.run(*command)
    assert any(str(server.data) in names for _, names in numbers(whole)), whole
    with ThreadPoolExecutor(COMMANDS_AT_A_TIME) as threads:
        answers = list(threads.map(lambda call: sidecar.run(*command, through=failing("openat", error, call)), calls))
    for call, answer in zip(calls, answers):
        assert answer.status == UNKNOWN or numbers(answer) == numbers(whole), (call, answer)


def test_too_few_files_to_begin(root):
    answer = sidecar.run("status", through=["prlimit", "--nofile=63"])
    assert answer.status == UNKNOWN and "limit of open files" in answer.stderr, answer


def test_a_cluster_as_debian_keeps_it(new_cluster, sized, tmp_path):
    """Its configuration lies in /etc/postgresql, and names the data directory."""
    server = new_cluster(shared_buffers="48MB")
    wanted = server.pages_needed(HUGE)
    script = ('mount -t tmpfs none /etc/postgresql && mkdir -p "/etc/postgresql/$1/main" && '
              'cp -p "$2/postgresql.conf" "$2/harness.conf" "/etc/postgresql/$1/main" && rm "$2/postgresql.conf" && '
              'echo "data_directory = \'$2\'" >> "/etc/postgresql/$1/main/postgresql.conf" && shift 2 && exec "$@"')
    through = ["unshare", "--mount", "sh", "-c", script, "sh", str(server.install.major), server.data]
    with made_directory(Path("/etc/postgresql")):
        need = sized(through=through)["needs"][str(server.data)]
    assert (need["pages_needed"], need["is_running"]) == (wanted, False)


def test_what_root_tells(new_cluster, sized, tmp_path):
    """A line of a file of root's, beside the service accounts: of a server that runs or not."""
    server = new_cluster(shared_buffers="48MB")
    wanted = server.pages_needed(HUGE)
    through = through_etc(tmp_path / "etc", {"hugepage-sidecar/postgresql-data": f"{server.data}/  # ours\n"})
    assert str(server.data) not in sized()["needs"]
    need = sized(through=through)["needs"][str(server.data)]
    assert (need["pages_needed"], need["is_running"]) == (wanted, False)
    server.start()
    out = sized(through=through)
    assert out["needs"][str(server.data)]["is_running"] and str(server.data) not in out["why"]


def test_what_was_seen_here(new_cluster, sized, tmp_path):
    """A server that ran counts as it did, with when that was, until its directory is gone, or root says so."""
    servers = [new_cluster(shared_buffers=size) for size in ("40MB", "64MB")]
    first, second = (str(server.data) for server in servers)
    wanted = {str(server.data): server.pages_needed(HUGE) for server in servers}

    def watch() -> None:
        assert "could not write" not in sidecar.run("watch", "--once", "--state-dir", tmp_path).stderr
    for server in servers:
        server.start()
    watch()
    for server in servers:
        server.stop()
    watch()
    out = sized()
    for name in wanted:
        need = out["needs"][name]
        assert (need["pages_needed"], need["is_running"]) == (wanted[name], False)
        assert need["remark"].startswith("last seen 20"), need
    assert out["counted"].startswith("Counted: ") and out["counted"].endswith("For others: --postgresql-data DIR")
    assert sized("--forget", first)["needs"].keys() & wanted.keys() == {second}
    servers[1].data.rename(tmp_path / "moved")
    assert second in sized()["needs"]
    watch()
    assert not sized()["needs"].keys() & wanted.keys()
    (tmp_path / "moved").rename(second)
    servers[1].start()
    watch()
    servers[1].stop()
    assert sized()["needs"].keys() & wanted.keys() == {second}
    answer = sidecar.run("size", "--state-dir", tmp_path, "--forget", "/srv/none")
    assert answer.status == UNKNOWN and "no server in /srv/none is remembered" in answer.stderr, answer


def test_a_container_that_was_removed(new_cluster, sized, tmp_path):
    """Its volume on the host tells: it counts while that is there. The host has nothing where the container has its data directory."""
    server = new_cluster(shared_buffers="40MB")
    inside = server.root / "inside"
    inside.mkdir()
    wanted = server.pages_needed(HUGE)
    server.conf(data_directory=inside)
    through = ["unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", str(server.data), str(inside)]

    def watch() -> None:
        assert "could not write" not in sidecar.run("watch", "--once", "--state-dir", tmp_path).stderr

    def needs() -> list[int]:
        return [need["pages_needed"] for name, need in sized()["needs"].items() if name.startswith(str(inside))]
    server.start(through=through)
    watch()
    server.stop()
    watch()
    assert needs() == [wanted]
    server.data.rename(tmp_path / "moved")
    assert needs() == [wanted]
    watch()
    assert needs() == []
    (tmp_path / "moved").rename(server.data)


def oracle_down(directory: Path, base: Path) -> list[str | Path]:
    """Homes with their files, and a command that runs another where oratab has them."""
    entries = []
    for sid, files in {
        "INIT": {"dbs/initINIT.ora": "*.sga_max_size=1000M\n*.sga_target=800M\n"},
        "SPF": {"dbs/spfileSPF.ora": "\0C\"\1spfile\0SPF.__sga_target=1\n*.sga_target=512M\nSPF.sga_max_size=64M\n\0\0"},
        "AMM": {"dbs/initAMM.ora": "memory_target=2G\n"},
        "OFF": {"dbs/initOFF.ora": "sga_target=1G\nuse_large_pages=FALSE\n"},
        "NONE": {},
    }.items():
        home = base / "product" / "19" / sid
        (home / "bin").mkdir(parents=True)
        (home / "bin/oracle").touch()
        entries.append(f"{sid}:{home}:N\n")
        for name, text in files.items():
            (home / name).parent.mkdir(exist_ok=True)
            (home / name).write_bytes(text.encode("latin-1"))
    oratab = directory / "oratab"
    oratab.write_text("".join(entries))
    script = 'mount -t tmpfs none /var/opt && mkdir /var/opt/oracle && cp "$0" /var/opt/oracle/oratab && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, oratab]


def test_instances_that_are_down(oracle, sized, tmp_path):
    """By their parameter files, by the log of their last start, or not at all, and then why."""
    through = oracle_down(tmp_path, oracle.base)
    out = sized(through=through)
    # Below 1 GB a granule is 4 MB.
    assert out["needs"]["INIT"]["pages_needed"] == 1000 * MB // HUGE + EXTRA
    assert out["needs"]["SPF"]["pages_needed"] == 512 * MB // HUGE + EXTRA
    assert "MEMORY_TARGET" in out["why"]["AMM"] and "FALSE" in out["why"]["OFF"]
    assert "NONE" in out["why"] and out["status"] == UNKNOWN
    # The last start of the one had another SGA_MAX_SIZE; of the other we know nothing else.
    for sid, expected in (("INIT", 600), ("NONE", 33)):
        trace = oracle.base / "diag" / "rdbms" / sid.lower() / sid / "trace"
        trace.mkdir(parents=True)
        (trace / f"alert_{sid}.log").write_text(alert_log.of_19(1, expected, 0, 3))
    out = sized(through=through)
    assert out["needs"]["INIT"]["pages_needed"] == 1000 * MB // HUGE + EXTRA
    assert out["needs"]["NONE"]["pages_needed"] == 33
    assert sized("--running-only", through=through)["needs"].keys() & {"INIT", "NONE", "SPF"} == set()


def test_every_face_counts_what_is_down(oracle, pool, tmp_path):
    """`status`, `check` and the files for Oracle have the rows and the pool that `size` has."""
    through = oracle_down(tmp_path, oracle.base)
    pool(HUGE, 10)
    oracle.instance("RUNS", SysV(20 * MB, HUGE))
    trace = oracle.base / "diag" / "rdbms" / "spf" / "SPF" / "trace"
    trace.mkdir(parents=True)
    refused = "ORA-27137: unable to allocate Large Pages to create a shared memory segment"
    started = alert_log.of_19(1, 300, 0, 3).partition("PMON started")[0]
    (trace / "alert_SPF.log").write_text(f"{started}\n{refused}\n")
    state = ("--state-dir", tmp_path / "state")
    result = sidecar.run("status", *state, "--format", "json", through=through)
    answer = result.json()
    stopped = {row["name"]: row for row in answer["stopped"]}
    assert {name: row["state"] for name, row in stopped.items()} == {
        "INIT": "stopped", "SPF": "failed", "AMM": "stopped", "OFF": "stopped", "NONE": "stopped"}
    assert stopped["INIT"]["pages_needed"] == 1000 * MB // HUGE + EXTRA and stopped["OFF"]["pages_needed"] == 0
    assert stopped["NONE"]["pages_needed"] is None and stopped["NONE"]["notes"]
    assert refused in stopped["SPF"]["message"] and (result.status, answer["verdict"]) == (CRITICAL, "critical")
    size = sidecar.run("size", *state, "--format", "json", through=through).json()
    of_size, = (row for row in size["pools"] if row["page_size"] == HUGE)
    of_status, = (row for row in answer["pools"] if row["page_size"] == HUGE and row["node"] is None)
    # `size` alone asks PostgreSQL's programs what stopped clusters need.
    clusters = sum(need["pages_needed"] for need in of_size["needs"] if not need["is_running"] and need["instance"] not in stopped)
    assert of_size["recommended_nr_hugepages"] - clusters == of_status["recommended_nr_hugepages"]
    checked = sidecar.run("check", *state, through=through)
    assert checked.status == CRITICAL and refused in checked.stdout
    assert sidecar.run("check", *state, "--instance", "INIT", through=through).stdout.split(" - ")[1].startswith("INIT: ")


def test_what_runs_and_what_is_down_together(oracle, pool, new_cluster, sized):
    """Started after the pool was set: an SGA in huge pages beside the cluster, where it had none before."""
    server = new_cluster(shared_buffers="48MB")
    borrowed = pool(HUGE, 10)
    full = oracle.instance("FULL", SysV(20 * MB, HUGE))
    empty = oracle.instance("EMPTY", SysV(12 * MB), SysV(3 * MB))
    out = sized("--postgresql-data", server.data)
    assert {name: (need["pages_needed"], need["pages_held"]) for name, need in out["needs"].items() if name in ("FULL", "EMPTY")} == {
        "FULL": (10, 10), "EMPTY": (6 + 2, 0)}
    empty.stop()
    borrowed.resize(borrowed.numbers().held + 8 + out["needs"][str(server.data)]["pages_needed"])
    oracle.instance("EMPTY", SysV(12 * MB, HUGE), SysV(3 * MB, HUGE))
    server.start()
    assert smaps.main_mapping(server.postmaster).page_size == HUGE
    assert borrowed.numbers().available <= 1
    full.stop()


def test_what_does_not_fit_is_named(oracle, pool, sized, tmp_path):
    """No number that the host can't hold, as measured, and who is too large by how much."""
    pool(HUGE, 4)
    oracle.instance("SMALL", SysV(8 * MB, HUGE))
    size = kernel.meminfo()["MemTotal"] * 97 // 100
    oracle.instance("LARGE", SysV(size, touch=False))
    out = sized("--running-only")
    misfit, = out["pool"]["does_not_fit"]
    needed = pages(size, HUGE)
    assert (misfit["instance"], misfit["pages_needed"]) == ("LARGE", needed)
    assert misfit["pages_over"] == out["pool"]["needed_in_all"] - out["pool"]["capacity"] > 0
    assert out["pool"]["recommended_nr_hugepages"] <= out["pool"]["capacity"]
    assert out["status"] == WARNING
    answer = sidecar.run("size", "--running-only", "--state-dir", tmp_path)
    assert f"LARGE does not fit: its {needed} pages are" in " ".join(answer.stdout.split())
    assert f"nr_hugepages={needed}" not in answer.stdout


def test_beyond_the_reserve_with_a_caution(oracle, pool, sized):
    """The number is given, with what it leaves to base pages."""
    pool(HUGE, 0)
    size = meminfo()["MemTotal"] * 15 // 100 // HUGE * HUGE
    oracle.instance("BASE", SysV(size, touch=False))
    out = sized("--running-only", "--reserve-percent", "90")
    assert out["pool"]["does_not_fit"] == [] and out["pool"]["capacity_within_reserve"] < size // HUGE
    assert out["pool"]["command"] and out["pool"]["caution"].endswith("less than 90% of memory")


def test_the_table_is_as_wide_as_a_terminal(oracle, pool, tmp_path):
    pool(HUGE, 4)
    oracle.instance("ORCL", SysV(8 * MB, HUGE))
    table = sidecar.run("size", "--running-only", "--state-dir", tmp_path)
    assert table.status == OK and max(map(len, table.stdout.splitlines())) <= 80
