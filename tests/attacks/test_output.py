"""What others name reaches a terminal, a log, a list and a shell as text; and the reader of output may go away."""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_door import fake

from harness import sidecar
from harness.attacker import USER
from harness.sidecar import OK, UNKNOWN
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

HOSTILE = "a\x1b]0;owned\x07\n2026-01-01T00:00:00Z WARNING:  forged\r'\"$(touch owned)\u202e"


@pytest.fixture
def named(root, tmp_path) -> Iterator[Path]:
    """A process that calls itself postgres, in a data directory with such a name, as root so that it is shown in full."""
    data = tmp_path / HOSTILE
    data.mkdir()
    (data / "PG_VERSION").write_text("15\n")
    (data / "postgresql.conf").write_text("huge_pages = on\n")
    process = subprocess.Popen(["postgres", "-c", "while :; do read line; sleep 60; done", "-D", str(data)], executable="/bin/bash",
                               stdin=subprocess.PIPE, cwd=data)
    yield data
    process.kill()
    process.wait()


@pytest.mark.parametrize("arguments", [
    ["status"], ["status", "--format", "csv"], ["size"], ["check"], ["check", "--instance", HOSTILE],
    ["watch", "--once"], ["metrics"], ["report", "--html", "-"],
])
def test_no_control_character_gets_through(named, tmp_path, arguments):
    state = [] if arguments[0] == "metrics" else ["--state-dir", tmp_path / "state"]
    answer = sidecar.run(*arguments, *state)
    for text in (answer.stdout, answer.stderr) if arguments[0] != "metrics" else (answer.stderr,):
        assert not set(text) & set("\x1b\x07\r\u202e"), text
        assert not any(line.startswith("2026-01-01T00:00:00Z") for line in text.splitlines()), text


HOSTILE_IN_MEMORY = "a\x1b[31m\x9b31m\x7f\u202efdp\u061cünï\t"


def test_json_and_metrics_can_be_shown(root, tmp_path):
    """A server that counts, with shared memory and such a name: what programs read can be shown on a terminal, and reads back."""
    data = tmp_path / HOSTILE_IN_MEMORY
    data.mkdir()
    with fake(data, size=64 * MB, uid=0) as process:
        for arguments in (["status", "--format", "json"], ["size", "--format", "json"]):
            text = sidecar.run(*arguments).stdout
            assert not set(text) & set("\x1b\x9b\x7f\u202e\u061c"), text
            assert "\\u009b31m" in text and "ünï" in text
        named = {row["pid"]: row["name"] for row in sidecar.run("status", "--format", "json").json()["instances"]}
        assert named[process.pid] == str(data)
        state, file = tmp_path / "state", tmp_path / "status.json"
        sidecar.run("watch", "--once", "--state-dir", state, "--json", file)
        assert str(data) in {row["name"] for row in json.loads(file.read_text())["instances"]}
        assert not set(file.read_text()) & set("\x1b\x9b\x7f\u202e\u061c")
        metrics = sidecar.run("metrics").stdout
        assert "fdp" in metrics and "ünï" in metrics and "\\x9b31m" in metrics
        assert not set(metrics) & set("\x1b\x9b\x7f\u202e\u061c\t"), metrics


@pytest.mark.whole_host
@pytest.mark.parametrize("arguments", [["status"], ["status", "--format", "json"], ["status", "--format", "csv"], ["size"], ["check"],
                                       ["metrics"], ["report"], ["oracle", "install-sql"]])
def test_a_reader_that_goes_away(arguments):
    """The exit status is what it is with a reader, and no panic is on stderr."""
    expected = sidecar.run(*arguments)
    command = " ".join(map(shlex.quote, sidecar.command(*arguments)))
    for redirection in (f"({command}; echo $? >&3) 3>&2 2>/dev/null | true", f"{command} >&- 2>/dev/null; echo $? >&2"):
        done = subprocess.run(["bash", "-c", redirection], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        assert done.stderr.split()[-1] == str(expected.status), done
    both = subprocess.run(["bash", "-c", f"{command} >&- 2>&-"], stdin=subprocess.DEVNULL, timeout=60)
    assert both.returncode == expected.status
    broken = subprocess.run(["bash", "-c", f"({command}; echo $? >&3) 3>&1 2>&1 >/dev/null | cat"], capture_output=True, text=True,
                            timeout=60)
    assert "panicked" not in broken.stdout


def test_a_full_disk_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run(sidecar.command("status"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == UNKNOWN and "could not write" in done.stderr


def test_watch_replaces_no_device(root, tmp_path):
    """Row 11: only a regular file is replaced, and `--once` says by its exit status that the file was not written."""
    before = os.stat("/dev/null")
    link, target = tmp_path / "link", tmp_path / "target"
    target.write_text("kept")
    link.symlink_to(target)
    for path in (Path("/dev/null"), link):
        answer = sidecar.run("watch", "--once", "--state-dir", tmp_path / "state", "--json", path)
        assert answer.status == UNKNOWN and "not a regular file" in answer.stderr, answer
    assert os.stat("/dev/null").st_rdev == before.st_rdev and target.read_text() == "kept" and link.is_symlink()
    answer = sidecar.run("watch", "--once", "--state-dir", tmp_path / "state", "--json", tmp_path / "new.json")
    assert (tmp_path / "new.json").stat().st_mode & 0o777 == 0o644 and answer.status in (OK, 1, 2, 3)


@pytest.mark.parametrize("arguments", [["report", "--html"], ["metrics", "--textfile"], ["watch", "--once", "--json"],
                                       ["watch", "--once", "--state-dir"]])
@pytest.mark.parametrize("who", ["owner", "everybody", "link"])
def test_nothing_is_written_where_a_stranger_could_exchange_it(root, tmp_path, arguments, who):
    above = tmp_path / "above"
    (above / "below").mkdir(parents=True)
    if who == "link":
        (tmp_path / "link").symlink_to(above)
        os.lchown(tmp_path / "link", USER, USER)
        above = tmp_path / "link"
    elif who == "owner":
        os.chown(above, USER, USER)
    else:
        above.chmod(0o777)
    answer = sidecar.run(*arguments, above / "below/new")
    assert answer.status == UNKNOWN and answer.stdout == "" and "could put something else in its place" in answer.stderr
    assert list((above / "below").iterdir()) == []


@pytest.mark.parametrize("mode", [0o1777, 0o1775])
def test_no_stranger_makes_files_among_those_of_the_history(root, tmp_path, mode):
    """In a sticky directory nobody replaces what is root's, but there is a name that root has not taken yet."""
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, -1, USER)
    state.chmod(mode)
    answer = sidecar.run("watch", "--once", "--state-dir", state)
    assert answer.status == UNKNOWN and answer.stdout == "" and "a group or any user could put something else in its place" in answer.stderr
    assert list(state.iterdir()) == []
