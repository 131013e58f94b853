"""What the server's program says is only for those who may read pg_file_settings: it may say what a file has that is nobody's business."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install
from harness.library import library
from harness.own_programs import own_programs, replace_server
from harness.preloaded import PRELOADED, await_answer
from harness.status import create_extension

pytestmark = pytest.mark.own_servers

SECRET = "s3cr3t"
VIEWS = ("hugepage_status", "hugepage_findings", "hugepage_recommendations", "hugepage_history")


def alter_system(text: str) -> Callable[[Cluster], None]:
    """Somebody has edited the file of ALTER SYSTEM."""
    def change(server: Cluster) -> None:
        with open(server.data / "postgresql.auto.conf", "a") as conf:
            conf.write(text)
    return change


def program(script: str) -> Callable[[Cluster], None]:
    return lambda server: replace_server(server.install, script)


def preload(init: str) -> Callable[[Cluster], None]:
    def change(server: Cluster) -> None:
        made = library(Install.find(), server.root, init)
        server.conf(shared_preload_libraries=f"{server.settings.get('shared_preload_libraries', '')}, {made}".lstrip(", "))
    return change


REFUSED = {
    "no value": alter_system(f"primary_conninfo = 'x' {SECRET}\n"),
    "a value": alter_system(f"max_connections = '{SECRET}'\n"),
    "no parameter": alter_system(f"{SECRET} = 'x'\n"),
    "a value of the main file": lambda server: server.conf(work_mem=SECRET),
}
UNKNOWN = {
    "a full disk": alter_system(f"max_connections = '{SECRET}: No space left on device'\n"),
    "a file that is only in the data directory": alter_system(f"include '{SECRET}.conf'\n"),
    "exit status 255": preload(f'fprintf(stderr, "{SECRET}\\n"); _exit(255);'),
    "another output": preload(f'puts("{SECRET}"); fflush(stdout);'),
    "a number is none": program(f'case "$*" in *"-C max_connections") echo {SECRET};; *) exec {{real}} "$@";; esac'),
    "a value is refused": program(f'case "$*" in *"-C huge_pages") echo "FATAL:  {SECRET}" >&2; exit 1;; *) exec {{real}} "$@";; esac'),
}


@pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("change,will_start", [*((change, False) for change in REFUSED.values()), *((change, None) for change in UNKNOWN.values())],
                         ids=[*REFUSED, *UNKNOWN])
def test_no_text_of_the_program(new_cluster, change, will_start, preloaded):
    with tempfile.TemporaryDirectory(prefix="pg_hugepages-programs-") as place:
        os.chmod(place, 0o755)
        server = new_cluster(install=own_programs(Install.find(), Path(place)), huge_pages=False, **(PRELOADED if preloaded else {}))
        create_extension(server.start())
        server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
        change(server)
        if preloaded:
            server.sql("SELECT pg_reload_conf()")
            await_answer(server)
        [row] = server.sql("SELECT * FROM hugepage_preflight()")
        assert row["will_start"] is will_start and SECRET in row["detail"], row
        assert "pgsql_tmp_hugepages" not in row["detail"]
        if will_start is False and change in list(REFUSED.values())[:2]:
            assert "postgresql.auto.conf" in row["detail"], row
        session = server.connect(user="watcher")
        notices = session.notices
        [row] = server.sql("SELECT * FROM hugepage_preflight()", user="watcher")
        assert row["will_start"] is will_start and row["detail"] and SECRET not in str(row), row
        for view in VIEWS:
            found = server.sql(f"SELECT * FROM {view}", user="watcher")
            assert SECRET not in str(found), (view, found)
        assert SECRET not in str(notices)
        session.close()
        server.stop("immediate")


def test_the_start_without_an_option(new_cluster):
    """The files alone load a library that the options of the running server do not."""
    server = new_cluster(huge_pages=False)
    made = library(server.install, server.root, f'write_stderr("{SECRET}\\n"); exit(1);')
    server.conf(shared_preload_libraries=made)
    server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o", "-c shared_preload_libraries=''")
    create_extension(server)
    server.sql("CREATE ROLE watcher LOGIN IN ROLE pg_monitor")
    for user, is_told in (("postgres", True), ("watcher", False)):
        [row] = server.sql("SELECT * FROM hugepage_preflight()", user=user)
        assert row["will_start"] is None and "which only pg_ctl restart repeats" in row["detail"], row
        assert (SECRET in row["detail"]) is is_told, row
