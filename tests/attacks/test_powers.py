"""What root, or a user with capabilities in its place, could see and a server's user can't: no file of that user leads there."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_door import COUNTED, SECRET, fake, row, status

from harness import sidecar
from harness.attacker import USER
from harness.traces import made_directory

pytestmark = pytest.mark.any_major

MONITOR = 4713
"""A user without account, who runs the sidecar with capabilities."""
NAME = "known-to-root"
READING = ["sys_ptrace", "dac_read_search", "dac_override"]
BECOMING = ["setuid", "setgid", "kill"]


@pytest.fixture
def closed(home) -> Iterator[Path]:
    """A directory that root alone may search: a file, a name that is no file, and the configuration of a cluster."""
    place = home.parent / f"closed-{os.getpid()}"
    (place / f"{NAME}.conf").mkdir(parents=True)
    (place / NAME).mkdir()
    (place / NAME / "postgresql.conf").write_text(f"data_directory = '{place / NAME}'\n")
    (place / NAME / "PG_VERSION").write_text("15\n")
    (place / "a.conf").write_text(f"huge_pages = '{SECRET}'\n")
    place.chmod(0o700)
    yield place
    shutil.rmtree(place)


def outputs(**options) -> str:
    answers = [sidecar.run(command, *COUNTED, *more, **options) for command in ("status", "size") for more in ([], ["--format", "json"])]
    return "".join(answer.stdout + answer.stderr for answer in answers)


@pytest.mark.parametrize("target", [".", "a.conf"])
def test_what_a_link_leads_to(home, closed, target):
    """T8: of the directory that a server's user links to, not even a name is told."""
    (home / "link").symlink_to(closed / target)
    (home / "postgresql.conf").write_text(f"{'include_dir' if target == '.' else 'include'} 'link'\n")
    os.chown(home / "postgresql.conf", USER, USER)
    with fake(home) as process:
        assert any(f"{home}/link" in note and "denied" in note for note in row(status(*COUNTED), process)["notes"])
        text = outputs()
    assert NAME not in text and SECRET not in text, text


def test_clusters_that_a_link_leads_to(closed):
    """T8: a major version of stopped clusters that the servers' user makes in its place."""
    major = Path("/etc/postgresql/98")
    with made_directory(major.parent):
        major.symlink_to(closed)
        try:
            text = outputs()
            closed.chmod(0o755)
            of_open = outputs()
        finally:
            major.unlink()
    assert NAME not in text and NAME in of_open, (text, of_open)


@pytest.mark.parametrize("capabilities", [READING, READING + BECOMING], ids=["reading", "becoming"])
@pytest.mark.parametrize("name", ["postgresql.conf", "postgresql.auto.conf"])
def test_capabilities_open_no_door(home, closed, name, capabilities):
    """T10: who has been given root's powers over files reads for a server's user only what that user may."""
    (home / name).symlink_to(closed / "a.conf")
    held = ",".join(f"+{capability}" for capability in capabilities)
    through = ["setpriv", f"--reuid={MONITOR}", f"--regid={MONITOR}", "--clear-groups", f"--inh-caps={held}", f"--ambient-caps={held}"]
    # It could: only so there is something that holds.
    assert SECRET in subprocess.run([*through, "cat", home / name], capture_output=True, text=True, check=True).stdout
    with fake(home):
        text = outputs(through=through)
        assert str(home) in text
    assert SECRET not in text, text
