"""An ordinary user attacks root, who runs `capture`: links and names that lead out of the capture."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import sidecar
from harness.sidecar import OK

pytestmark = pytest.mark.any_major


@pytest.fixture
def pretend(root, tmp_path) -> Iterator[Callable[..., int]]:
    """A process of nobody that calls itself postgres, with this data directory and working directory."""
    processes = []

    def pretend(data: Path, cwd: Path, *arguments: str) -> int:
        process = subprocess.Popen(["postgres", "-c", "while :; do read line; sleep 60; done", "-D", str(data), *arguments], executable="/bin/bash",
                                   stdin=subprocess.PIPE, cwd=cwd, user="nobody", group="nogroup", extra_groups=[])
        processes.append(process)
        time.sleep(0.3)
        return process.pid
    yield pretend
    for process in processes:
        process.kill()
        process.wait()


def test_nothing_is_written_through_a_link(pretend, tmp_path):
    """Row 1 of docs/security.md: proc/PID/cwd leads to a directory of root's, config_file to a file below the link."""
    tmp_path.chmod(0o755)
    for path in tmp_path.parents:
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    target, data = tmp_path / "target", tmp_path / "data"
    target.mkdir()
    data.mkdir()
    os.chown(data, 65534, 65534)
    (data / "PG_VERSION").write_text("15\n")
    (data / "postgresql.conf").write_text("include 'postgresql.base.conf'\n")
    before = sorted(os.listdir(target))
    pid = pretend(data, target)
    # Its number is known now, so it can name a file below its own link.
    config = f"/proc/{pid}/cwd/auxv"
    (data / "postgresql.conf").write_text(f"include '{config}'\ninclude 'x/../../target/evil.conf'\n")
    pretend(data, target, "-c", f"config_file={config}")
    out = tmp_path / "capture"
    answer = sidecar.run("capture", out)
    assert answer.status == OK, answer
    assert sorted(os.listdir(target)) == before == []
    # Nothing but files, directories and links, and no write followed a link.
    for directory, _names, files in os.walk(out):
        for name in files:
            path = Path(directory, name)
            assert path.is_symlink() or path.is_file(), path
    assert (out / "README").is_file() and not (out / "README").is_symlink()
    assert out.stat().st_mode & 0o777 == 0o700
    # It reads as the host did.
    assert sidecar.run("--root", out, "status").stdout


def test_names_do_not_forge_lines(pretend, tmp_path):
    """A directory name with a line break adds no line to README or to the list of refusals."""
    data = tmp_path / "data\n13 forged"
    data.mkdir()
    os.chown(data, 65534, 65534)
    pretend(data, Path("/"))
    out = tmp_path / "capture"
    assert sidecar.run("capture", out).status == OK
    for name in ("README", "refused", "changed"):
        assert not any(line.startswith("13 forged") for line in (out / name).read_text().splitlines()), name
