"""What files of the next boot name is never opened: a script below a user's home, links, root's own secrets, a file system that does not
answer."""

import os
import pwd
import re
import subprocess
import time
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar, silent_fuse
from harness.attacker import USER
from harness.own_etc import through_etc, unit, units
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
    through = [*through_etc(place / "etc", files), "strace", "-f", "-y", "-e", "trace=%file", "-o", str(trace)]
    # Nobody asks what the next boot does where no server runs.
    (place / "server").mkdir()
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


@pytest.mark.parametrize("kind", ["a script of a user's", "a link to root's secret", "a device"])
def test_what_a_unit_names(place, kind):
    secret = place / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    script = place / "home/boot.sh"
    if kind == "a script of a user's":
        script.write_text("sysctl -w vm.nr_hugepages=4242\n")
        os.chown(script, USER, USER)
    else:
        script.symlink_to(secret if kind == "a link to root's secret" else "/dev/zero")
    names = {**unit(script), "cron.d/of-a-test": f"@reboot root {script}\n", "rc.local": f"#!/bin/sh\n. {script}\n"}
    answer, trace = survey(place, names, "size")
    assert "of-a-test-0.service" in trace, "the unit itself is read"
    assert named(trace, place) == []
    assert "4242" not in answer.stdout + answer.stderr


def test_on_a_file_system_that_does_not_answer(place):
    (place / "mount").mkdir()
    with silent_fuse.mounted(place / "mount", USER, "directory") as mounted:
        silent = mounted.file
        names = {**units([silent, f"{silent}/boot.sh"]), "rc.local": f"#!/bin/sh\n{silent}\n"}
        answer, trace = survey(place, names, "size")
    assert named(trace, place) == []
    assert answer.status != sidecar.UNKNOWN or "no answer" not in answer.stderr


def test_a_link_in_place_of_a_unit(place):
    """An enabled unit is a link to a file; one that leads to a user's, or to root's secret, is named and not followed."""
    unit_of_user = place / "home/of-a-test.service"
    unit_of_user.write_text("[Service]\nExecStart=sysctl -w vm.nr_hugepages=4242\n")
    os.chown(unit_of_user, USER, USER)
    secret = place / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    names = {"systemd/system/of-a-test.service": unit_of_user, "sysctl.d/zz-of-a-test.conf": unit_of_user,
             "tmpfiles.d/of-a-test.conf": secret}
    answer, trace = survey(place, names, "size")
    assert not [line for line in named(trace, place) if "open" in line]
    assert "4242" not in answer.stdout + answer.stderr
