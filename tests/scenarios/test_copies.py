"""Two copies of the library in one server: an error that says so, and what to do."""

import shutil
from pathlib import Path

import psycopg2
import pytest

from harness.cluster import Cluster, Install, StartFailed, rows
from harness.preloaded import PRELOADED
from harness.status import EXTENSION, create_extension

pytestmark = pytest.mark.own_servers

INSTALLED = Path(Install.find().ask("pkglibdir"), f"{EXTENSION}.so")


def copy(server: Cluster) -> Path:
    """Another copy, which the server can read."""
    found = server.root / "copy" / INSTALLED.name
    found.parent.mkdir()
    shutil.copy(INSTALLED, found)
    for path in (server.root, found.parent, found):
        path.chmod(0o755)
    return found


@pytest.mark.parametrize("settings", [{}, PRELOADED], ids=["loaded", "preloaded"])
def test_a_second_copy_is_refused(new_cluster, settings):
    """Both files are named, and the session and the first copy go on."""
    server = create_extension(new_cluster(**settings).start())
    other, session = copy(server), server.connect()
    assert rows(session, "SELECT verdict FROM hugepage_status")
    for _ in range(2):
        with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState) as error:
            rows(session, f"LOAD '{other}'")
        assert error.value.diag.message_primary == "another copy of pg_hugepages is loaded already"
        assert error.value.diag.message_detail == f'"{INSTALLED}" is loaded, and "{other}" is another file.'
        assert "without a directory" in error.value.diag.message_hint
        assert rows(session, "SELECT verdict FROM hugepage_status")
    # A link is the same file, and the library that is loaded may be named again.
    link = other.with_name("link.so")
    link.symlink_to(INSTALLED)
    for same in (link, INSTALLED, EXTENSION):
        rows(session, f"LOAD '{same}'")


def test_a_server_that_preloads_both_does_not_start(new_cluster):
    server = new_cluster()
    server.conf(shared_preload_libraries=f"{EXTENSION}, {copy(server)}")
    with pytest.raises(StartFailed):
        server.start()
    assert "another copy of pg_hugepages is loaded already" in server.log()
