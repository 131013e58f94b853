"""hugepage-sidecar capture: elsewhere the tree answers as the host did, and it holds no secret."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.poll import until
from harness.processes import run
from harness.sidecar import OK, UNKNOWN
from harness.units import MB

pytestmark = pytest.mark.any_major

SECRET = "pw-8c1f0a"


def files(tree: Path) -> set[str]:
    """Every file and link, as the host names it."""
    return {"/" + str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_symlink() or path.is_file()}


def answer(*arguments: str | Path, user: str | None = None, tree: Path | None = None) -> Any:
    """What status says, without what has to differ: times, free memory, the source of page sizes, where the files are."""
    root = ["--root", tree] if tree else []
    result = sidecar.run(*root, "status", "--format", "json", *arguments, user=user)
    assert result.stdout, result.stderr
    plain = result.json() if not tree else sidecar.Answer(result.status, result.stdout.replace(f"{tree}/", "/"), "").json()
    plain.pop("taken_at")
    plain.pop("memory")
    for instance in plain["instances"]:
        instance.pop("evidence")
        # The time less the age of a process, in hundredths of a second: it may be the next second.
        assert instance.pop("started")
    return result.status, plain


def captured_at_rest(directory: Path, user: str | None = None) -> tuple[Path, Any]:
    """A capture, and what status said both before and after it: other servers of the host may come and go."""
    def attempt() -> tuple[Path, Any] | None:
        tree = directory / f"host-{len(list(directory.iterdir()))}"
        before = answer(user=user)
        done = sidecar.run("capture", tree, user=user)
        assert (done.status, done.stderr) == (OK, "")
        return (tree, before) if answer(user=user) == before else None

    return until("the host to stand still for a capture", attempt, seconds=120)


@pytest.fixture
def servers(new_cluster, pool) -> list[Cluster]:
    """One server in huge pages, one in base pages, with secrets wherever they can be."""
    first, second = new_cluster(), new_cluster(shared_buffers="64MB")
    pool(2 * MB, first.pages_needed(2 * MB))
    for server in (first, second):
        server.conf(primary_conninfo=f"host=none password={SECRET}", archive_command=f"false {SECRET}",
                    cluster_name="one of two")
    first.start()
    second.command("pg_ctl", "start", "-w", "-s", "-D", second.data, "-l", second.log_file,
                   "-o", f"-c restore_command={SECRET} -c work_mem=5MB")
    first.sql(f"ALTER SYSTEM SET archive_cleanup_command = 'true {SECRET}'")
    # A tree has no program that could be asked what files come to that have changed since the start.
    first.restart()
    return [first, second]


def test_the_tree_answers_as_the_host(servers, tmp_path):
    tree, before = captured_at_rest(tmp_path)
    assert answer(tree=tree) == before
    names = {instance["name"] for instance in before[1]["instances"]}
    assert {str(server.data) for server in servers} <= names
    assert {instance["landed_in"] for instance in before[1]["instances"]} >= {"hugetlb", "base"}
    assert not (tree / "refused").read_text()
    # A capture of the capture has lost nothing, and found nothing.
    again = tmp_path / "again"
    assert sidecar.run("--root", tree, "capture", again).status == OK
    assert answer(tree=again) == before
    assert files(again) == files(tree)


def test_a_standby_answers_as_on_its_host(new_cluster, tmp_path):
    """What it compares with its primary is captured."""
    primary = new_cluster(max_connections=20, max_worker_processes=20).start()
    standby = new_cluster(upstream=primary)
    standby.conf(primary_conninfo=f"host={primary.root} port=5432 user=postgres")
    standby.start()

    def outlooks(status: Any) -> tuple[str, str]:
        row = next(row for row in status["instances"] if row["pid"] == standby.postmaster)
        return row["restart_outlook"], row["crash_outlook"]

    tree, here = captured_at_rest(tmp_path)
    assert answer(tree=tree) == here and outlooks(here[1]) == ("base", "base")
    primary.conf(max_connections=60)
    primary.restart()
    until("the record of the setting", lambda: outlooks(answer()[1]) == ("fails", "fails"))
    tree, here = captured_at_rest(tmp_path)
    assert answer(tree=tree) == here and outlooks(here[1]) == ("fails", "fails")


def test_the_tree_asks_no_program(servers, tmp_path):
    """What files come to that have changed since the start is unknown there."""
    servers[0].conf(shared_buffers="64MB")
    assert sidecar.run("capture", tmp_path / "host").status == OK
    here, there = (next(row for row in status["instances"] if row["pid"] == servers[0].postmaster)
                   for _, status in (answer(), answer(tree=tmp_path / "host")))
    assert (here["restart_outlook"], there["restart_outlook"]) == ("hugetlb", "unknown")
    assert any("has changed since the server" in note for note in there["notes"])


def test_no_secret_leaves(servers, tmp_path):
    servers[0].sql("CREATE ROLE alice LOGIN")
    session = servers[0].connect(user="alice")
    bystander = subprocess.Popen(["sh", "-c", "read answer", "sh", SECRET], stdin=subprocess.PIPE,
                                 env={**os.environ, "PGPASSWORD": SECRET})
    assert "alice" in Path(f"/proc/{session.info.backend_pid}/cmdline").read_text()
    planted = run("grep", "-rl", SECRET, str(servers[0].root), str(servers[1].root)).split()
    assert len(planted) >= 4, "the secrets are there to be found"
    try:
        tree = tmp_path / "host"
        assert sidecar.run("capture", tree).status == OK
        for file in files(tree):
            content = (tree / file[1:]).read_bytes() if not (tree / file[1:]).is_symlink() else b""
            for secret in (SECRET, "alice", "conninfo", "PGPASSWORD"):
                assert secret.encode() not in content and secret not in file, file
        assert not {"/etc/machine-id", "/etc/shadow"} & files(tree)
        accounts = (tree / "etc/passwd").read_text().splitlines() if "/etc/passwd" in files(tree) else []
        assert all(re.fullmatch(r"[a-z]+::\d+:\d+:::", line) for line in accounts), "people, homes or passwords"
        assert (tree.stat().st_mode & 0o777) == 0o700
    finally:
        bystander.communicate()
        session.close()


def test_it_has_what_status_opens_and_nothing_else(servers, tmp_path):
    """Seen by strace, whatever the program notes itself."""
    tree, trace = tmp_path / "host", tmp_path / "trace"
    assert sidecar.run("capture", tree).status == OK
    subprocess.run(["strace", "-f", "-y", "-qq", "-o", trace, "-e", "trace=openat", *sidecar.command("status")],
                   capture_output=True, timeout=60)
    opened = {line.rsplit("<", 1)[1].rstrip(">") for line in trace.read_text().splitlines() if line.endswith(">")}
    own, captured = {str(os.getpid())}, {os.path.realpath(file) for file in files(tree)}
    servers_pids = {path.split("/")[2] for path in files(tree) if path.startswith("/proc/") and path.split("/")[2].isdigit()}
    for path in opened:
        parts = path.split("/")
        if not Path(path).is_file() or parts[1] not in ("proc", "sys", "etc") and str(servers[0].root.parent) not in path:
            continue
        # Of processes those of servers; this program itself has another pid each time.
        if parts[1] == "proc" and parts[2].isdigit() and parts[2] not in servers_pids - own:
            continue
        # The identifier of the machine is looked at, and never leaves it.
        if parts[1] == "etc" and parts[2] in ("ld.so.cache", "localtime", "machine-id"):
            continue
        # What is read below the root directory of a process is captured there, and a file by the name of a link to it.
        assert (tree / path[1:]).exists() or path in captured or any(tree.glob(f"proc/*/root{path}")), path
    for server in servers:
        assert f"{server.data}/postgresql.conf" in files(tree)
        assert f"/proc/{server.postmaster}/maps" in files(tree)
        assert not any(file.startswith(f"{server.data}/base") for file in files(tree))


def test_an_ordinary_users_capture_is_refused_what_they_are(servers, tmp_path):
    """What could not be seen is as unknown in the tree as it was on the host."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & 0o077 == 0:
            parent.chmod(0o711)
    place = tmp_path / "of-nobody"
    place.mkdir()
    run("chown", "nobody", str(place))
    tree, before = captured_at_rest(place, user="nobody")
    assert f"/proc/{servers[0].postmaster}/maps" in (tree / "refused").read_text()
    assert answer(tree=tree) == before
    [own] = [instance for instance in before[1]["instances"] if instance["pid"] == servers[0].postmaster]
    assert own["notes"]


def test_what_is_there_is_not_touched(root, tmp_path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").write_text("mine")
    refused = sidecar.run("capture", taken)
    assert refused.status == UNKNOWN and "is not empty" in refused.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "file"]
    (taken / "file").unlink()
    assert sidecar.run("capture", taken).status == OK and (taken / "README").exists()
    assert sidecar.run("capture", tmp_path / "no" / "such").status == UNKNOWN


def test_a_full_disk_leaves_nothing(root, tmp_path):
    run("mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path))
    try:
        failed = sidecar.run("capture", tmp_path / "host")
        assert failed.status == UNKNOWN and "nothing was captured" in failed.stderr
        assert "No space left on device" in failed.stderr
        assert list(tmp_path.iterdir()) == []
    finally:
        run("umount", str(tmp_path))


def test_an_interrupt_leaves_nothing(root, tmp_path):
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=symlinkat,mkdir", "-e", "inject=mkdir:delay_enter=100000",
               *sidecar.command("capture", tmp_path / "host")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until("the capture to begin", lambda: [path for path in tmp_path.rglob("*") if path.is_dir()][1:])
    [pid] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(pid), signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == UNKNOWN and "interrupted" in errors
    assert list(tmp_path.iterdir()) == []
