"""What a restart would ask for, from what the server knows by itself: pending parameters, and files that are newer than the last reload. No
session says what another one does not, and none says more than is known.
"""

import os
import time
from collections.abc import Callable

import pytest

from harness.cluster import FILE_CLOCK, Cluster, Unsupported, rows
from harness.poll import until
from harness.preloaded import WATCHED, await_answer
from harness.smaps import main_mapping
from harness.status import EXTENSION, FORGOTTEN, create_extension, own_notes
from harness.units import MB

pytestmark = pytest.mark.own_servers

RELOAD = "SELECT pg_reload_conf()"


def status(server: Cluster, session=None) -> dict:
    [row] = rows(session, "SELECT * FROM hugepage_status") if session else server.sql("SELECT * FROM hugepage_status")
    return row


def reload(server: Cluster) -> None:
    """Returns when the postmaster has read the files: a session that begins now has what it has."""
    time.sleep(FILE_CLOCK)
    seen = server.log().count("received SIGHUP")
    server.sql(RELOAD)
    until("the reload", lambda: server.log().count("received SIGHUP") > seen)


def assert_newer(server: Cluster, file: object) -> None:
    """Unknown, since that file has changed after the last reload."""
    row = status(server)
    assert row["restart_outlook"] == "unknown"
    assert any(str(file) in note and RELOAD in note for note in own_notes(row)), row["notes"]


def assert_pending(server: Cluster, name: str, *hidden: str) -> None:
    """Unknown, since that parameter waits for a restart; no value is told."""
    row = status(server)
    assert row["restart_outlook"] == "unknown"
    assert any(name in note for note in own_notes(row)), row["notes"]
    assert not any(value in note for note in own_notes(row) for value in hidden), row["notes"]


def assert_the_same(server: Cluster, outlook: str = "base") -> None:
    """A restart asks for what runs."""
    row = status(server)
    assert row["restart_outlook"] == outlook
    assert not [note for note in own_notes(row) if "pending" in note or RELOAD in note or "command line" in note], row["notes"]


def assert_forgotten(server: Cluster) -> None:
    """Nothing differs that this server shows, but a value that it has refused it would not show: unknown."""
    row = status(server)
    assert row["restart_outlook"] == "unknown"
    assert any(note.startswith((FORGOTTEN, "the last reload has refused the value of")) for note in own_notes(row)), row["notes"]


@pytest.fixture
def server(new_cluster) -> Cluster:
    """Not preloaded: nobody asks the server's program by itself."""
    server = new_cluster(huge_pages=False, max_prepared_transactions=5)
    (server.data / "conf.d").mkdir()
    with open(server.data / "postgresql.conf", "a") as conf:
        conf.write("include_dir 'conf.d'\n")
    return create_extension(server.start())


def test_a_pending_parameter(server):
    assert_the_same(server)
    server.conf(shared_buffers="140MB")
    assert_newer(server, server.data / "harness.conf")
    reload(server)
    assert_pending(server, "shared_buffers", "140MB", "128MB")
    # The value is set back.
    server.conf(shared_buffers="131072kB")
    assert_newer(server, server.data / "harness.conf")
    reload(server)
    assert_forgotten(server)


def test_a_line_that_has_gone(server):
    server.conf(max_prepared_transactions=None)
    reload(server)
    assert_pending(server, "max_prepared_transactions")
    server.conf(max_prepared_transactions=5)
    reload(server)
    assert_forgotten(server)


def test_a_file_that_changes_nothing(server):
    server.conf(work_mem="5MB")
    assert_newer(server, server.data / "harness.conf")
    reload(server)
    assert_forgotten(server)
    server.sql("ALTER SYSTEM SET work_mem = '6MB'")
    assert_newer(server, "postgresql.auto.conf")
    reload(server)
    assert_forgotten(server)


def test_a_directory_without_files(server):
    """As Debian's conf.d."""
    file = server.data / "conf.d" / "10.conf"
    file.write_text("shared_buffers = 150MB\n")
    file.chmod(0o644)
    assert_newer(server, "conf.d")
    reload(server)
    assert_pending(server, "shared_buffers")
    file.unlink()
    assert_newer(server, "conf.d")
    reload(server)
    assert_forgotten(server)


def test_a_change_right_after_a_reload(server):
    """Its time may be that of a coarse clock, some milliseconds before (current_time(), fs/inode.c)."""
    loaded = "SELECT pg_conf_load_time() AS at"
    with server.connect() as session:
        for megabytes in range(5, 25):
            before = rows(session, loaded)
            rows(session, RELOAD)
            while rows(session, loaded) == before:
                pass
            (server.data / "conf.d" / "10.conf").write_text(f"work_mem = {megabytes}MB\n")
            assert status(server, session)["restart_outlook"] == "unknown"


def start_with(server: Cluster, options: str) -> None:
    server.stop()
    server.command("pg_ctl", "start", "-w", "-s", "-D", server.data, "-l", server.log_file, "-o", options)


def test_an_option_of_the_command_line(server):
    """Whether the next start has it again is unknown, also after a reload."""
    start_with(server, "-c shared_buffers=64MB")
    assert_pending(server, "shared_buffers", "64MB")
    reload(server)
    assert_pending(server, "shared_buffers", "64MB")
    # The files say the same.
    server.conf(shared_buffers="64MB")
    reload(server)
    assert_forgotten(server)


def test_options_of_no_part_in_memory(server):
    start_with(server, "-c cluster_name=other -c log_min_messages=debug1")
    assert_the_same(server)


def test_an_invalid_value_that_was_reloaded(server):
    """The server logs it, and remembers nothing: without an asker nobody knows, and who asks is told."""
    server.conf(work_mem="5XB")
    assert_newer(server, server.data / "harness.conf")
    reload(server)
    assert status(server)["restart_outlook"] == "unknown"
    server.conf(work_mem="5MB")
    reload(server)
    server.conf(work_mem="5XB")
    reload(server)
    assert_forgotten(server)
    [row] = server.sql("SELECT will_start, detail FROM hugepage_preflight()")
    assert row["will_start"] is False and "work_mem" in row["detail"]


@pytest.mark.any_major
def test_the_worker_has_it_asked(new_cluster, root):
    """A parameter that is pending, and a value that the server logged and forgot: at most a sample after another question."""
    server = create_extension(new_cluster(huge_pages=False, **WATCHED).start())
    for change, outlook in (({"shared_buffers": "140MB"}, "base"), ({"shared_buffers": "128MB", "work_mem": "5XB"}, "fails")):
        server.conf(**change)
        reload(server)
        until(f"the answer {outlook}", lambda: status(server)["restart_outlook"] == outlook and not own_notes(status(server)))
    server.conf(work_mem="4MB")
    reload(server)
    until("the same again", lambda: status(server)["restart_outlook"] == "base")


@pytest.mark.any_major
def test_preflight_answers_for_all(new_cluster, root):
    """Its asker writes what every session reads."""
    server = create_extension(new_cluster(huge_pages=False, **WATCHED).start())
    for size in ("140MB", "150MB", "160MB"):
        server.conf(shared_buffers=size)
        reload(server)
        assert server.sql("SELECT lands_in FROM hugepage_preflight()") == [{"lands_in": "base"}]
        row = status(server)
        assert (row["restart_outlook"], own_notes(row)) == ("base", [])


@pytest.mark.any_major
@pytest.mark.parametrize("reloaded", [False, True], ids=["not reloaded", "reloaded"])
def test_a_second_edit_for_a_library_that_is_not_loaded(new_cluster, pool, reloaded):
    """Its setting is no parameter that runs; the answer to the first edit is none to the second."""
    server = new_cluster(**WATCHED)
    if not server.install.has_extension("pg_stat_statements"):
        raise Unsupported("a library with a setting was not tried: this PostgreSQL has no contrib modules")
    server.conf(shared_preload_libraries=f"{EXTENSION}, pg_stat_statements")
    enough = server.pages_needed(2 * MB)
    server.conf(shared_preload_libraries=EXTENSION)
    pool(2 * MB, enough)
    create_extension(server.start())
    server.conf(shared_preload_libraries=f"{EXTENSION}, pg_stat_statements")
    reload(server)
    until("the answer to the first edit", lambda: status(server)["restart_outlook"] == "hugetlb", seconds=90)
    server.conf(**{"pg_stat_statements.max": 400_000})
    if reloaded:
        reload(server)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert status(server)["restart_outlook"] != "hugetlb"
    assert server.sql("SELECT lands_in FROM hugepage_preflight()") == [{"lands_in": "base"}]
    assert status(server)["restart_outlook"] == "base"
    assert main_mapping(server.restart().postmaster).landed_in == "base"


INCLUDED: dict[str, tuple[bytes, str]] = {
    "behind a long comment": (b"included.conf", "# and so on\n" * 100_000),
    "with a line feed": (b"in\ncluded.conf", ""),
    "not in UTF-8": (b"in\xffcluded.conf", ""),
}


@pytest.mark.parametrize("name, before", INCLUDED.values(), ids=INCLUDED)
def test_an_included_file_that_is_not_found(new_cluster, root, name, before):
    """Nobody sees its changes, so that nothing is promised. It sets nothing at first."""
    server = new_cluster(huge_pages=False, **WATCHED)
    file = os.fsencode(server.data) + b"/" + name
    with open(server.data / "postgresql.conf", "ab") as conf, open(file, "wb"):
        conf.write(before.encode() + b"include '" + name.replace(b"\n", b"\\n") + b"'\n")
    os.chmod(file, 0o644)
    create_extension(server.start())
    await_answer(server)
    with open(file, "w") as included:
        included.write("shared_buffers = 5XB\n")
    assert status(server)["restart_outlook"] == "unknown"
    [row] = server.sql("SELECT will_start, detail FROM hugepage_preflight()")
    assert row["will_start"] is False and "shared_buffers" in row["detail"]


OF_SESSIONS: dict[str, tuple[dict[str, object], list[str]]] = {
    "temp_buffers": ({"temp_buffers": "16MB"}, ["CREATE TEMPORARY TABLE used (n int)", "INSERT INTO used VALUES (1)", "SELECT * FROM used"]),
    "text search": ({"default_text_search_config": "public.of_a_test"}, []),
    "tablespace": ({"default_tablespace": "of_a_test"}, []),
    "work_mem": ({"work_mem": "5MB"}, ["SET work_mem = '7MB'"]),
    "search_path": ({"temp_tablespaces": "of_a_test"}, ["SET search_path = pg_catalog, public"]),
}


@pytest.mark.parametrize("change, before", OF_SESSIONS.values(), ids=OF_SESSIONS)
def test_each_session_says_the_same(new_cluster, change, before):
    """Whatever it has set, has used, and which database it is in. What it says comes true."""
    server = create_extension(new_cluster(huge_pages=False).start())
    server.sql("CREATE DATABASE other")
    server.sql(f"CREATE EXTENSION {EXTENSION}", dbname="other")
    server.sql("CREATE TEXT SEARCH CONFIGURATION public.of_a_test (COPY = english)")
    sessions: list[Callable[[], list[dict]]] = []
    for dbname, statements in (("postgres", before), ("other", before), ("postgres", [])):
        session = server.connect(dbname)
        for statement in statements:
            rows(session, statement)
        rows(session, "SELECT count(*) FROM hugepage_status")
        sessions.append(session)

    def answers() -> set[tuple[str, tuple[str, ...]]]:
        found = [status(server, session) for session in [*sessions, server.connect(), server.connect("other")]]
        return {(row["restart_outlook"], tuple(own_notes(row))) for row in found}

    assert answers() == {("base", ())}
    server.conf(**change)
    [(outlook, notes)] = answers()
    assert outlook == "unknown" and RELOAD in notes[0]
    reload(server)
    until("every session to have handled the reload", lambda: len(answers()) == 1)
    [(outlook, notes)] = answers()
    assert outlook == "unknown" and not [note for note in notes if RELOAD in note]
    server.restart()
