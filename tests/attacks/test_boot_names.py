"""What a link in place of a file of the next boot leads to is never opened: a user's file, root's own secrets, a file system that does not
answer."""

import os
import pwd
import re
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, silent_fuse
from harness.attacker import USER
from harness.own_etc import through_etc
from harness.units import MB

pytestmark = pytest.mark.any_major

SECRET = "vm.nr_hugepages = 4242 of a secret"


@pytest.fixture
def place(root, tmp_path_factory) -> Path:
    """A directory that everybody may enter, with a user's home in it."""
    place = Path(f"/tmp/pg_hugepages-boot-{os.getpid()}")
    (place / "home").mkdir(parents=True)
    os.chown(place / "home", USER, USER)
    yield place
    subprocess.run(["rm", "-rf", place], check=True)


def survey(place: Path, files: dict[str, str | Path], *arguments: str) -> tuple[sidecar.Answer, str]:
    """The answer of the sidecar on a host with these files below /etc, and the paths of all that it opened or looked at."""
    trace = place / "trace"
    through = [*through_etc(Path(tempfile.mkdtemp(dir=place)), files), "strace", "-f", "-y", "-e", "trace=%file", "-o", str(trace)]
    # Nobody asks what the next boot does where no server runs.
    (place / "server").mkdir(exist_ok=True)
    postgres = pwd.getpwnam("postgres").pw_uid
    os.chown(place / "server", postgres, -1)
    with fake(place / "server", size=64 * MB, uid=postgres):
        begun = time.monotonic()
        answer = sidecar.run(*arguments, through=through)
        assert time.monotonic() - begun < 8
    return answer, trace.read_text()


def named(trace: str, place: Path) -> list[str]:
    """The calls on what is below the home, beside the program's own start."""
    return [line for line in trace.splitlines() if re.search(rf'"{place}/(home|secret|mount)', line) and "execve" not in line]


def test_a_link_in_place_of_a_file(place):
    """One that leads to a user's file, or to root's secret, is named and not followed."""
    of_user = place / "home/of-a-test.conf"
    of_user.write_text("vm.nr_hugepages = 4242\n")
    os.chown(of_user, USER, USER)
    secret = place / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    for names in ({"sysctl.d/zz-of-a-test.conf": of_user}, {"sysctl.d/zz-of-a-test.conf": secret},
                  {"tmpfiles.d/postgresql-hugepages.conf": secret}, {"hugepage-sidecar/next-boot": secret}):
        answer, trace = survey(place, names, "status")
        assert f"/etc/{next(iter(names))}" in trace, "it is looked at"
        assert not [line for line in named(trace, place) if "open" in line]
        assert "4242" not in answer.stdout + answer.stderr


def test_on_a_file_system_that_does_not_answer(place):
    (place / "mount").mkdir()
    with silent_fuse.mounted(place / "mount", USER, "directory") as mounted:
        answer, trace = survey(place, {"sysctl.d/zz-of-a-test.conf": mounted.file}, "status")
    assert named(trace, place) == []
    assert answer.status != sidecar.UNKNOWN or "no answer" not in answer.stderr
