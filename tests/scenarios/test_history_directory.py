"""The history outside of the data directory: what it survives, who shares it, and a directory that is not there."""

import os
import shutil
from pathlib import Path

import pytest

from harness import sidecar
from harness.cluster import SUPERUSER, Cluster
from harness.poll import until
from harness.preloaded import PRELOADED, WATCHED, await_samples, await_worker, events, history
from harness.processes import run
from harness.server_log import messages
from harness.status import create_extension
from harness.units import MB

SETTING = "pg_hugepages.history_directory"


def directory(server: Cluster, name: str = "past") -> Path:
    made = server.root / name
    made.mkdir()
    if os.geteuid() == 0:
        shutil.chown(made, SUPERUSER, SUPERUSER)
    return made


def test_a_restored_data_directory_keeps_the_past_of_its_server(new_cluster):
    """A restore in place and pg_rewind replace the data directory, and with it a history in it."""
    server = new_cluster(**PRELOADED, huge_pages=False, **{SETTING: "../past"})
    past = directory(server)
    create_extension(server.start())
    await_worker(server)
    server.stop()
    backup = server.root / "backup"
    run("cp", "-a", str(server.data), str(backup))
    server.start()
    await_worker(server)
    server.stop("immediate")
    shutil.rmtree(server.data)
    backup.rename(server.data)
    server.start()
    await_worker(server)
    assert events(server) == [("start", "base", False)] * 3
    assert [path.name.split(".")[0] for path in past.iterdir()] == ["pg_hugepages"]
    assert list(server.data.glob("pg_hugepages*")) == []
    assert server.sql(f"SHOW {SETTING}") == [{SETTING: "../past"}]


def test_a_server_and_its_standby_share_a_directory(new_cluster, reserved_host):
    """The standby has the settings of its primary: each has a file of its own, and cuts no record of the other."""
    primary = new_cluster(**PRELOADED, huge_pages=False, **{"pg_hugepages.history_size": 2})
    past = directory(primary)
    primary.conf(**{SETTING: past})
    create_extension(primary.start())
    standby = reserved_host.cluster(upstream=primary, hot_standby=True)
    primary.root.chmod(0o755)
    for _ in range(3):
        standby.restart()
        await_worker(standby)
    assert events(primary) == [("start", "base", False)]
    assert events(standby) == [("start", "base", False)] * 2
    assert len(list(past.iterdir())) == 2


@pytest.mark.any_major
@pytest.mark.parametrize("what", ["missing", "a file", "not writable"])
def test_a_directory_that_is_of_no_use(new_cluster, root, what):
    """The server starts and works, one line of its log names it, and it is used as soon as it can be."""
    server = new_cluster(**WATCHED, huge_pages=False)
    past = server.root / "past"
    if what == "a file":
        past.touch()
    elif what == "not writable":
        past.mkdir(0o755)
    server.conf(**{SETTING: past})
    create_extension(server.start())
    await_worker(server)
    await_samples(server, 2)
    assert server.crash()
    await_worker(server)
    reported = [message for message in messages(server.log()) if str(past) in message.text]
    assert [message.level for message in reported] == ["LOG"], reported
    why = {"missing": "No such file or directory", "a file": "Not a directory", "not writable": "Permission denied"}[what]
    assert reported[0].text.startswith("could not ") and why in reported[0].text
    assert history(server) == [] and list(server.data.glob("pg_hugepages*")) == []
    if what == "a file":
        past.unlink()
    elif what == "not writable":
        past.rmdir()
    directory(server)
    server.restart()
    await_worker(server)
    assert events(server) == [("start", "base", False)]


def test_a_reload_moves_the_history(new_cluster):
    """The worker writes to the new place, where each session reads; the old file stays as it is."""
    server = create_extension(new_cluster(**PRELOADED, huge_pages=False).start())
    await_worker(server)
    old = server.data / "pg_hugepages.history"
    before = old.read_bytes()
    server.conf(**{SETTING: directory(server)})
    server.sql("SELECT pg_reload_conf()")
    until("the record", lambda: history(server) and history(server)[-1]["event"] == "reload")
    row, = history(server)
    assert row["detail"] == f'{SETTING} from "" to "{server.root}/past"'
    assert old.read_bytes() == before
    with server.connect() as session, session.cursor() as cursor, pytest.raises(Exception, match="cannot be changed now"):
        cursor.execute(f"SET {SETTING} = '/'")


@pytest.mark.any_major
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
def test_the_sidecar_reads_it_there(new_cluster, pool, tmp_path, relative):
    """What the last start lost is in the server's history, by the setting in its configuration files."""
    server = new_cluster(**PRELOADED)
    past = directory(server, "the past")
    server.conf(**{SETTING: "../the past" if relative else past})
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    server.start()
    borrowed.resize(0)
    assert server.crash()
    metrics = sidecar.run("metrics", "--state-dir", tmp_path).stdout
    assert any("regressed" in line and str(server.data) in line for line in metrics.splitlines())
