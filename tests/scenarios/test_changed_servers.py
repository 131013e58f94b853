"""After a change on disk root asks `size` what the next start needs, and that is compared with the server; `status` asks nobody."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar, smaps
from harness.cluster import Cluster, StartFailed
from harness.poll import until
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

HUGE = 2 * MB
Reader = Callable[[Cluster], dict[str, Any]]


@pytest.fixture
def sidecar_row(tmp_path, root) -> Reader:
    """The row of a running server in `status`, which runs no program."""
    def row(server: Cluster) -> dict[str, Any]:
        answer = sidecar.run("status", "--format", "json", "--state-dir", tmp_path)
        assert answer.stderr == "", answer
        [row] = [row for row in answer.json()["instances"] if row["name"] == str(server.data)]
        return row
    return row


@pytest.fixture
def need(tmp_path, root) -> Reader:
    """What `size` says of a running server: its `pages_needed`, or a `reason` and the exit status of an unknown need."""
    def need(server: Cluster) -> dict[str, Any]:
        answer = sidecar.run("size", "--running-only", "--format", "json", "--state-dir", tmp_path)
        out = answer.json()
        unknown = [one for one in out["not_counted"] if one["instance"] == str(server.data)]
        assert not unknown or answer.status == sidecar.UNKNOWN, answer
        [counted] = [one for pool in out["pools"] for one in pool["needs"] if one["instance"] == str(server.data)]
        return {**counted, **(unknown[0] if unknown else {"reason": ""})}
    return need


@pytest.fixture
def server(new_cluster, pool) -> Cluster:
    """It has all pages of the pool that nobody else holds."""
    server = new_cluster(shared_buffers="32MB", huge_pages="try")
    borrowed = pool(HUGE, 0)
    needed = server.pages_needed(HUGE)
    borrowed.resize(borrowed.numbers().held + needed)
    server.start()
    borrowed.resize(borrowed.numbers().held)
    assert smaps.main_mapping(server.postmaster).page_size == HUGE
    return server


@pytest.fixture
def new_standby(server) -> Iterator[Callable[..., Cluster]]:
    """A running standby of the server, with these settings; removed also when the test fails."""
    with ExitStack() as standbys:
        def standby(**settings: Any) -> Cluster:
            standby = standbys.enter_context(server.standby(**settings))
            standby.conf(primary_conninfo=f"host={server.root} port=5432 user=postgres")
            return standby.start()
        yield standby


@pytest.mark.parametrize("setting", [
    "shared_buffers = '64MB'", "shared_buffers = '16MB'", "shared_buffers = '32MB'", "max_connections = 900",
    "shared_preload_libraries = 'pg_stat_statements'",
])
def test_the_need_of_the_next_start(server, need, sidecar_row, setting):
    """To the page. Majors up to 18 count one page of memory too many, which may be a huge page."""
    server.sql(f"ALTER SYSTEM SET {setting}")
    row, found = sidecar_row(server), need(server)
    assert row["restart_outlook"] == "unknown" and row["crash_outlook"] == "hugetlb", row
    assert any("has changed since" in note for note in row["notes"])
    own = smaps.main_mapping(server.postmaster).length // HUGE
    server.stop()
    needed = server.pages_needed(HUGE)
    assert found["pages_needed"] in (max(own, needed), max(own, needed - 1)) and not found["reason"], (found, needed)


def test_a_script_that_becomes_the_server(server, sidecar_row):
    """A container's entry point makes the files, and the server replaces it: only what changes afterwards is a change."""
    server.stop()
    script = server.root / "entry-point"
    # The server tells its start in whole seconds.
    script.write_text(f"""#!/bin/sh
echo >>{server.data}/postgresql.auto.conf
sleep 1.1
exec {server.install.bindir}/postgres "$@"
""")
    script.chmod(0o755)
    server.command("pg_ctl", "start", "-w", "-s", "-p", script, "-D", server.data, "-l", server.log_file)
    assert sidecar_row(server)["restart_outlook"] == "hugetlb"
    server.sql("ALTER SYSTEM SET shared_buffers = '64MB'")
    assert sidecar_row(server)["restart_outlook"] == "unknown"


REFUSED = {
    "max_connections = many": 'invalid value for parameter "max_connections": "many"',
    "no_such_setting = 1": 'unrecognized configuration parameter "no_such_setting"',
    "shared_preload_libraries = 'pg_auth_mon'": 'could not access file "pg_auth_mon": No such file or directory',
    "max_connections = 2": "must be less than max_connections",
    "include 'none.conf'": 'none.conf": No such file or directory',
    "wal_level = minimal": 'requires wal_level "replica" or "logical"',
}
UNCLEAR = {
    "shared_buffers = '64MB": "line 1 of",
    "max_stack_depth = 100kB": "max_stack_depth is set",
    "shared_buffers = '64MB # MB'": "'64MB # MB' is not a size",
}


def unquoted(error: str) -> str:
    """Without what PostgreSQL 17 and newer have more: quotes around names of settings, and `to be`."""
    return error.replace('"', "").replace(" to be ", " ")


def test_starts_that_fail_and_what_stays_unknown(server, need, sidecar_row):
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include 'more.conf'\n")
    more = server.data / "more.conf"
    for change, why in UNCLEAR.items():
        more.write_text(change + "\n")
        assert why in need(server)["reason"], need(server)
    for change, error in REFUSED.items():
        more.write_text(change + "\n")
        reason = need(server)["reason"]
        assert "its next start would fail" in reason and unquoted(error) in unquoted(reason), reason
        assert sidecar_row(server)["crash_outlook"] == "hugetlb"
    server.stop()
    for change in REFUSED:
        more.write_text(change + "\n")
        with pytest.raises(StartFailed):
            server.start()


@pytest.mark.parametrize("include", ["include_if_exists", "include"])
def test_an_included_file_that_was_removed(server, need, include):
    """Only its directory shows it. The same with a link whose target was removed."""
    for is_link in (False, True):
        server.stop()
        server.conf(shared_buffers="64MB")
        extra, elsewhere = server.data / "extra", server.data / "elsewhere"
        for directory in (extra, elsewhere):
            directory.mkdir(exist_ok=True)
            os.chown(directory, server.data.stat().st_uid, -1)
        more, target = extra / "more.conf", elsewhere / "more.conf"
        target.write_text("shared_buffers = 32MB\n")
        if is_link:
            more.symlink_to(target)
        else:
            target.rename(more)
        with open(server.data / "postgresql.conf", "a") as conf:
            conf.write(f"{include} 'extra/more.conf'\n")
        server.start()
        assert smaps.main_mapping(server.postmaster).page_size == HUGE
        before = need(server)
        assert not before["reason"], before
        (target if is_link else more).unlink()
        found = need(server)
        if include == "include":
            assert "its next start would fail" in found["reason"] and "more.conf" in found["reason"], (is_link, found)
        else:
            assert found["pages_needed"] >= before["pages_needed"] + 32 * MB // HUGE and not found["reason"], (is_link, found)
        more.unlink(missing_ok=True)


def test_options_of_the_command_line(server, need):
    """What only pg_ctl restart repeats may decide."""
    server.stop()
    server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o", "-c shared_buffers=16MB")
    server.sql("ALTER SYSTEM SET shared_buffers = '64MB'")
    assert "only pg_ctl restart repeats" in need(server)["reason"]


def test_a_standby_below_its_primary(new_standby, need):
    standby = new_standby()
    standby.conf(max_connections=10)
    assert "recovery aborted" in need(standby)["reason"]
    standby.conf(hot_standby=False)
    assert not need(standby)["reason"]


def test_a_standby_whose_primary_has_raised_a_setting(server, new_standby, sidecar_row):
    """A crash ends it. Once its file has changed, it can't be seen from outside what it runs with."""
    standby = new_standby()

    def outlooks() -> tuple[str, str]:
        row = sidecar_row(standby)
        return row["restart_outlook"], row["crash_outlook"]

    assert outlooks() == ("base", "base")
    server.conf(max_connections=300)
    server.restart()
    until("the record of the setting", lambda: outlooks() == ("fails", "fails"))
    standby.conf(max_connections=300)
    assert outlooks() == ("unknown", "unknown")
    assert not standby.crash()
    standby.start()
    assert outlooks() == ("base", "base")


def test_a_standby_of_which_too_little_is_known(new_standby, sidecar_row):
    """What its owner has put in the place of pg_control, or wrote for a setting, is never taken for enough."""
    standby = new_standby(max_connections="0x64")

    def assert_unknown(why: str) -> None:
        row = sidecar_row(standby)
        assert (row["restart_outlook"], row["crash_outlook"]) == ("unknown", "unknown"), row
        assert any("whether the standby recovers" in note and why in note for note in row["notes"]), row["notes"]

    assert_unknown("max_connections = '0x64' is not a plain number")
    standby.conf(max_connections=100)
    standby.restart()
    assert sidecar_row(standby)["crash_outlook"] == "base"
    control, aside = standby.data / "global/pg_control", standby.data / "global/aside"
    for put in (lambda: os.mkfifo(control), lambda: control.symlink_to("/etc/shadow"), lambda: control.write_bytes(b"")):
        control.rename(aside)
        try:
            put()
            assert_unknown("")
        finally:
            control.unlink()
            aside.rename(control)
    assert sidecar_row(standby)["crash_outlook"] == "base"


def test_a_crash_in_base_pages_keeps_the_page_size_of_the_start(new_cluster, sidecar_row, pool):
    """Asked for pages of 1 GB, of which there are none, it landed in base pages. Its files ask for 2 MB again, of which there
    are enough; a crash asks for 1 GB, and only a restart reads the files."""
    server = new_cluster(shared_buffers="32MB", huge_page_size="1GB", shared_preload_libraries="pg_hugepages")
    server.needs_page_sizes()
    pool(HUGE, server.pages_needed(HUGE))
    server.start()
    server.conf(huge_page_size=None)
    row = sidecar_row(server)
    assert (row["restart_outlook"], row["crash_outlook"]) == ("unknown", "unknown"), row
    assert server.crash()
    assert smaps.main_mapping(server.postmaster).page_size != HUGE
    server.restart()
    assert smaps.main_mapping(server.postmaster).page_size == HUGE


def test_only_size_asks_a_program(server, tmp_path: Path):
    server.sql("ALTER SYSTEM SET shared_buffers = '64MB'")
    file, trace = tmp_path / "status.json", tmp_path / "trace"
    sidecar.run("watch", "--once", "--state-dir", tmp_path / "state", "--json", file,
                through=["strace", "-f", "-qq", "-e", "trace=execve", "-o", trace])
    [row] = [row for row in sidecar.json.loads(file.read_text())["instances"] if row["name"] == str(server.data)]
    assert row["restart_outlook"] == "unknown" and trace.read_text().count("execve(") == 1
    for command in ("status", "check", "metrics"):
        sidecar.run(command, "--state-dir", tmp_path / "state", through=["strace", "-f", "-qq", "-e", "trace=execve", "-o", trace])
        assert trace.read_text().count("execve(") == 1, command
