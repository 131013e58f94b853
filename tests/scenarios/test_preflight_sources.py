"""What a start depends on beside the text of the files: its environment, links, its command line, a standby's primary."""

import os
import shutil
from pathlib import Path

import pytest

from harness.cluster import StartFailed
from harness.poll import until
from harness.preloaded import PRELOADED, await_answer
from harness.smaps import main_mapping
from harness.status import NOT_CHECKED, checked_status, create_extension, own_notes
from harness.units import MB

pytestmark = pytest.mark.own_servers


def preflight(server) -> dict:
    [row] = server.sql("SELECT * FROM hugepage_preflight()")
    return row


def own(path: Path, server) -> Path:
    os.chown(path, server.data.stat().st_uid, server.data.stat().st_gid, follow_symlinks=False)
    return path


def test_locale_of_the_environment(new_cluster, monkeypatch):
    """A locale that only LOCPATH leads to is valid for the server, and so for the next start."""
    server = new_cluster()
    place = server.root / "locales"
    shutil.copytree("/usr/lib/locale/C.utf8", place / "xx_TEST.utf8")
    monkeypatch.setenv("LOCPATH", str(place))
    server.conf(lc_monetary="xx_TEST.utf8")
    create_extension(server.start())
    server.conf(work_mem="5MB")
    assert preflight(server)["will_start"] is True
    server.reload()
    checked_status(server, verdict="notice", restart_outlook="unknown")


@pytest.mark.parametrize("mode", [0o770, 0o755])
def test_mode_of_the_data_directory(new_cluster, mode):
    """A start refuses it, and the server's program gets another directory."""
    server = create_extension(new_cluster().start())
    server.data.chmod(mode)
    row = preflight(server)
    assert (row["will_start"], row["lands_in"]) == (False, None) and "has invalid permissions" in row["detail"]
    server.stop()
    with pytest.raises(StartFailed, match="has invalid permissions"):
        server.start()
    server.data.chmod(0o750)
    server.start()
    assert preflight(server).items() >= {"will_start": True, "detail": NOT_CHECKED}.items()


@pytest.mark.parametrize("link_is", ["file", "directory"])
def test_link_switched_to_an_older_file(new_cluster, pool, link_is):
    server = new_cluster()
    versions = {name: own(server.root / name, server) for name in ("small", "large") if not (server.root / name).mkdir()}
    for name, size in (("small", "128MB"), ("large", "700MB")):
        own(versions[name] / "size.conf", server) if (versions[name] / "size.conf").write_text(
            f"shared_buffers = {size}\n") else None
    # The directory of an included file may be one of includes: nothing else may change there.
    (server.root / "etc").mkdir()
    link, included = ((server.root / "now", server.root / "now" / "size.conf") if link_is == "directory"
                      else (server.root / "etc" / "size.conf", server.root / "etc" / "size.conf"))

    def switch(name: str) -> None:
        target = versions[name] if link_is == "directory" else versions[name] / "size.conf"
        new = server.root / "new"
        new.symlink_to(target)
        new.rename(link)

    switch("small")
    server.settings["shared_buffers"] = None
    server.conf()
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write(f"include '{included}'\n")
    pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    session = server.connect()
    checked_status(server, session, verdict="ok", restart_outlook="hugetlb")
    switch("large")
    for asked in (session, None):
        row = checked_status(server, asked, verdict="notice", restart_outlook="unknown")
        assert f'"{link}" is newer than the last reload' in own_notes(row)[0]
    server.reload(session)
    for asked in (session, None):
        row = checked_status(server, asked, verdict="notice", restart_outlook="unknown")
        assert "a restart is pending for shared_buffers;" in own_notes(row)[0]
    assert preflight(server)["lands_in"] == "base"
    assert main_mapping(server.restart().postmaster).landed_in == "base"


def test_option_that_only_pg_ctl_restart_repeats(new_cluster, pool):
    server = new_cluster(shared_buffers="300MB")
    large = server.pages_needed(2 * MB)
    server.conf(shared_buffers="64MB")
    small = server.pages_needed(2 * MB)
    server.conf(shared_buffers="300MB")
    reserved = pool(2 * MB, small)

    def start(options: str) -> None:
        server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o", options)

    start("-c shared_buffers=64MB -c config_file=" + str(server.data / "postgresql.conf"))
    create_extension(server)
    row = checked_status(server, verdict="notice", landed_in="hugetlb", restart_outlook="unknown")
    assert "the command line sets shared_buffers, which only pg_ctl restart repeats" in own_notes(row)[0]
    assert "config_file" not in own_notes(row)[0]
    row = preflight(server)
    assert (row["will_start"], row["lands_in"]) == (None, "unknown")
    assert "shared_buffers=64MB" in row["detail"] and "pg_ctl restart" in row["detail"]
    # With pages for either start it does not matter which of them comes.
    reserved.resize(large)
    assert preflight(server)["lands_in"] == "hugetlb"
    reserved.resize(small)
    server.stop()
    server.start()
    assert main_mapping(server.postmaster).landed_in == "base"


@pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])
def test_options_that_files_repeat(new_cluster, pool, preloaded):
    """Patroni gives what its files have; Debian gives the place of the file. A reload compares them, or the server's program."""
    server = new_cluster(shared_buffers="64MB", max_connections=20, **(PRELOADED if preloaded else {}))
    pool(2 * MB, server.pages_needed(2 * MB))
    server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o",
                   f"-c max_connections=20 --shared_buffers=64MB --config_file={server.data}/postgresql.conf")
    create_extension(server)
    if preloaded:
        await_answer(server)
    else:
        [note] = own_notes(checked_status(server, restart_outlook="unknown"))
        assert "the command line sets max_connections, shared_buffers, which" in note and "config_file" not in note
        server.reload()
    assert own_notes(checked_status(server, restart_outlook="hugetlb")) == []


@pytest.mark.parametrize("name,value,least", [("max_connections", 10, 20), ("max_worker_processes", 3, 8),
                                              ("max_wal_senders", 2, 10), ("max_prepared_transactions", 1, 5),
                                              ("max_locks_per_transaction", 20, None)])
def test_standby_with_less_than_its_primary(new_cluster, name, value, least):
    primary = create_extension(new_cluster(max_prepared_transactions=5).start())
    standby = new_cluster(upstream=primary)
    standby.conf(**PRELOADED)
    standby.start()
    assert preflight(standby)["will_start"] is True
    assert preflight(primary)["will_start"] is True
    standby.conf(**{name: value})
    row = preflight(standby)
    assert row["will_start"] is False and "insufficient parameter settings" in row["detail"]
    checked_status(standby, verdict="critical", restart_outlook="fails")
    if least:
        assert f"{name} = {value} is a lower setting than on the primary server, where its value was {least}." in row["detail"]
    standby.stop()
    standby.log_file.write_text("")
    with pytest.raises(StartFailed) as failure:
        standby.start()
    for line in row["detail"].splitlines():
        assert line.split(":  ", 1)[-1] in str(failure.value)
    # Without queries nothing is compared.
    standby.conf(hot_standby=False)
    standby.start()


def test_a_primary_that_is_to_start_as_a_standby(new_cluster):
    """The answer of its program is older than the file that makes it one."""
    server = create_extension(new_cluster(max_connections=30, **PRELOADED).start())
    server.conf(max_connections=20)
    server.reload()
    await_answer(server)
    checked_status(server, restart_outlook="base")
    signal = server.data / "standby.signal"
    signal.touch()
    own(signal, server)
    checked_status(server, restart_outlook="unknown")
    assert preflight(server)["will_start"] is False
    checked_status(server, verdict="critical", restart_outlook="fails")
    server.stop()
    with pytest.raises(StartFailed, match="max_connections = 20 is a lower setting"):
        server.start()


def test_standby_whose_primary_has_raised_a_setting(new_cluster):
    """It goes on with its recovery paused, until a crash ends it; a restart with as much does not."""
    primary = create_extension(new_cluster(max_connections=20).start())
    standby = new_cluster(upstream=primary)
    standby.conf(primary_conninfo=f"host={primary.root} port=5432 user=postgres")
    standby.start()
    primary.conf(max_connections=60)
    primary.restart()

    def status() -> dict:
        return standby.sql("SELECT * FROM hugepage_status")[0]

    def outlooks() -> tuple[str, str]:
        return status()["restart_outlook"], status()["crash_outlook"]

    until("the record of the setting", lambda: outlooks() == ("fails", "fails"))
    assert any("max_connections = 20 is a lower setting" in note for note in status()["notes"]), status()
    # The file is only for the next start.
    standby.conf(max_connections=60)
    until("the file to be read", lambda: outlooks() == ("unknown", "fails"))
    assert preflight(standby)["lands_in"] == "base"
    assert not standby.crash()
    standby.start()
    assert outlooks() == ("base", "base")
