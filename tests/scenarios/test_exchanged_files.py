"""Files of the configuration that another one has taken the place of since the load, whatever its age: a restart is never called as now."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.cluster import Cluster, StartFailed, Unsupported, rows
from harness.poll import until
from harness.preloaded import PRELOADED, await_answer
from harness.processes import run
from harness.smaps import main_mapping
from harness.status import create_extension, own_notes

pytestmark = pytest.mark.own_servers

both = pytest.mark.parametrize("preloaded", [False, True], ids=["loaded", "preloaded"])


def own(path: Path, server: Cluster) -> Path:
    os.chown(path, server.data.stat().st_uid, server.data.stat().st_gid, follow_symlinks=False)
    return path


def file(path: Path, server: Cluster, text: str) -> Path:
    """A file of the server's user with this text."""
    path.write_text(text)
    return own(path, server)


def directory(path: Path, server: Cluster) -> Path:
    """A directory of the server's user."""
    path.mkdir()
    return own(path, server)


def include(server: Cluster, line: str) -> None:
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write(line + "\n")


def status(server: Cluster, session=None) -> dict:
    [row] = rows(session, "SELECT * FROM hugepage_status") if session else server.sql("SELECT * FROM hugepage_status")
    return row


def started(server: Cluster, is_preloaded: bool):
    """It is as it was loaded, and a session has seen that."""
    create_extension(server.start())
    session = server.connect()
    row = status(server, session)
    assert row["restart_outlook"] == "base" and own_notes(row) == [], row
    if is_preloaded:
        await_answer(server)
        # The worker has seen all files that the asker has found.
        until("the outlook", lambda: status(server)["restart_outlook"] == "base")
    return session


def assert_unknown(server: Cluster, session, what: Path | str) -> None:
    for asked in (session, None):
        row = status(server, asked)
        assert row["restart_outlook"] == "unknown", row
        assert str(what) in own_notes(row)[0], row["notes"]


def assert_foretold(server: Cluster, session, what: Path | str, is_preloaded: bool, outlook: str = "fails") -> None:
    """Unknown with its reason; where the server's program is asked, its answer."""
    if not is_preloaded:
        assert_unknown(server, session, what)
    [start] = server.sql("SELECT will_start FROM hugepage_preflight()")
    assert start["will_start"] == (outlook != "fails")
    if is_preloaded:
        assert (status(server)["restart_outlook"], status(server, session)["restart_outlook"]) == (outlook, outlook)


@pytest.fixture
def new_server(new_cluster) -> Callable[..., Cluster]:
    """Without huge pages; settings are in the main file, and not in one that is included."""
    def server(is_preloaded: bool) -> Cluster:
        return new_cluster(huge_pages=False, **(PRELOADED if is_preloaded else {}))
    return server


@both
@pytest.mark.parametrize("place", ["data", "etc"])
def test_an_empty_directory_that_is_removed(new_server, place, preloaded):
    """As Debian has it: nothing shows it but the directory that it was in, and the start is refused."""
    server = new_server(preloaded)
    main = server.data / "postgresql.conf"
    if place == "etc":
        main = directory(server.root / "etc", server) / "postgresql.conf"
        (server.data / "postgresql.conf").rename(main)
        (server.data / "pg_hba.conf").rename(main.with_name("pg_hba.conf"))
        (server.data / "pg_ident.conf").rename(main.with_name("pg_ident.conf"))
        text = main.read_text().replace("include_if_exists 'harness.conf'", f"include '{server.data}/harness.conf'")
        main.write_text(f"{text}\ndata_directory = '{server.data}'\ninclude_dir 'conf.d'\n")
    else:
        include(server, "include_dir 'conf.d'")
    directory(main.with_name("conf.d"), server)
    start = server.start
    if place == "etc":
        server.start = lambda: server.command("pg_ctl", "start", "-w", "-s", "-D", main.parent, "-l", server.log_file) or server
    session = started(server, preloaded)
    main.with_name("conf.d").rmdir()
    assert_foretold(server, session, "conf.d", preloaded)
    server.stop()
    server.start = start
    if place == "data":
        with pytest.raises(StartFailed, match="conf.d"):
            server.start()


@both
@pytest.mark.parametrize("depth", ["own", "parent"])
def test_blue_and_green(new_server, depth, preloaded):
    """Two directories of one name, one after the other. Both are older than the start."""
    server = new_server(preloaded)
    below = "" if depth == "own" else "parts"
    for name, size in (("now", "130MB"), ("green", "140MB")):
        directory(server.root / name, server)
        if below:
            directory(server.root / name / below, server)
        place = directory(server.root / name / below / "conf", server)
        file(place / "size.conf", server, f"shared_buffers = {size}\n")
    include(server, f"include_dir '{server.root / 'now' / below / 'conf'}'")
    session = started(server, preloaded)
    (server.root / "now").rename(server.root / "blue")
    (server.root / "green").rename(server.root / "now")
    assert_foretold(server, session, server.root / "now", preloaded, "base")
    before = main_mapping(server.postmaster).length
    assert main_mapping(server.restart().postmaster).length > before


@pytest.fixture
def bind(root) -> Iterator[Callable[[Path, Path], None]]:
    """Mounts a file over another, until the test ends."""
    with ExitStack() as mounts:
        def over(source: Path, target: Path) -> None:
            run("mount", "--bind", source, target)
            mounts.callback(run, "umount", target)
        yield over


@both
def test_a_file_that_is_mounted_over_another(new_server, bind, preloaded):
    """No time in it is that of the mount."""
    server = new_server(preloaded)
    other = file(server.root / "other.conf", server, "max_connections = many\n")
    include(server, "include_if_exists 'more.conf'")
    more = file(server.data / "more.conf", server, "max_connections = 20\n")
    session = started(server, preloaded)
    bind(other, more)
    assert_foretold(server, session, more, preloaded)
    # Neither a crash nor a reload that refuses it makes it the one that runs.
    server.sql("SELECT pg_reload_conf()")
    assert status(server)["restart_outlook"] != "base"
    if preloaded:
        assert server.crash(), server.log()
        assert status(server)["restart_outlook"] != "base"
    server.stop()
    with pytest.raises(StartFailed, match="max_connections"):
        server.start()


def test_an_untouched_server_that_mounts_its_file(new_server, bind):
    """What was mounted before the start is known where the postmaster has looked."""
    server = new_server(True)
    other = file(server.root / "other.conf", server, "max_connections = 20\n")
    include(server, "include 'more.conf'")
    bind(other, file(server.data / "more.conf", server, ""))
    started(server, True)


AHEAD = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    int (*real)(struct timeval *, void *) = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(time, zone);
    if (access(getenv("AHEAD"), F_OK) == 0) time->tv_sec += 8;
    return result;
}
"""


OUTLOOKS = {False: ["unknown"], True: ["unknown", "fails"]}
"""Of a file that no start accepts, where nobody asks, and where somebody may have asked."""


@both
def test_a_clock_that_was_ahead_at_the_start(new_server, monkeypatch, preloaded):
    """What is changed then has an earlier time than the load, also where that has passed."""
    if not shutil.which("cc"):
        raise Unsupported("a clock that was ahead was not tried: this host has no C compiler")
    server = new_server(preloaded)
    source, library, ahead = (server.root / name for name in ("ahead.c", "ahead.so", "ahead"))
    source.write_text(AHEAD)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    ahead.write_text("")
    with monkeypatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(library))
        environment.setenv("AHEAD", str(ahead))
        server.start()
    create_extension(server)
    ahead.unlink()
    session = server.connect()
    if preloaded:
        assert status(server, session)["restart_outlook"] == "base"
    server.conf(max_connections="many")
    for asked in (session, None):
        assert status(server, asked)["restart_outlook"] in OUTLOOKS[preloaded]
    until("the time of the load", lambda: server.sql("SELECT now() > pg_conf_load_time() AS is_past")[0]["is_past"])
    for asked in (session, None):
        assert status(server, asked)["restart_outlook"] in OUTLOOKS[preloaded]


@both
@pytest.mark.parametrize("change", ["replaced", "moved", "directory"])
def test_a_preloaded_library_outside_libdir(new_server, change, preloaded):
    """It is looked at where it is."""
    server = new_server(preloaded)
    place = directory(server.root / "lib", server)
    of_server = Path(server.install.ask("pkglibdir"), "auto_explain.so")
    if not of_server.exists():
        raise Unsupported("a library elsewhere was not tried: this PostgreSQL has no contrib modules")
    library = place / "other_explain.so"
    shutil.copy(of_server, library)
    names = ", ".join(filter(None, [server.settings.get("shared_preload_libraries"), str(library)]))
    server.conf(shared_preload_libraries=names)
    session = started(server, preloaded)
    if change == "replaced":
        shutil.copy(of_server, place / "new")
        (place / "new").rename(library)
    elif change == "moved":
        library.rename(place / "other_explain.so.old")
    else:
        shutil.copytree(place, server.root / "green")
        place.rename(server.root / "blue")
        (server.root / "green").rename(place)
    assert_foretold(server, session, f'replaced on disk since the start: "{library}"', preloaded,
                    "fails" if change == "moved" else "base")
