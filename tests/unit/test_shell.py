"""What is easily written and wrong in the scripts."""

import re
import subprocess

import pytest
from machine import REPOSITORY

TRACKED = subprocess.run(["git", "-C", REPOSITORY, "ls-files", "--cached", "--others", "--exclude-standard"],
                         text=True, capture_output=True).stdout.splitlines()
STOPS_READING = re.compile(r"\|\s*(?:\w+=\S+\s+)*(?:grep\s+-\w*[qm]|head\b|sed\s+(?:-\w+\s+)*'?\S*q'?\s*$)")


def scripts() -> list[str]:
    return [name for name in TRACKED if (REPOSITORY / name).is_file() and
            (name in ("dev", ".ci/run") or name.startswith(("scripts/", "packaging/"))) and
            "pipefail" in (REPOSITORY / name).read_text() or name.endswith(".sh")]


@pytest.mark.parametrize("name", scripts())
def test_no_pipe_ends_in_what_stops_reading_early(name):
    """Under pipefail the writer's SIGPIPE fails the whole pipe: now and then, on other machines."""
    lines = (REPOSITORY / name).read_text().splitlines()
    assert [line for line in lines if STOPS_READING.search(line) and not line.lstrip().startswith("#")] == []


def test_nothing_that_tests_leave_is_in_the_repository():
    assert [name for name in TRACKED if ".hypothesis/" in name or "__pycache__" in name] == []


def test_the_help_fits_a_terminal():
    text = subprocess.run([REPOSITORY / "dev", "help"], text=True, capture_output=True, check=True).stdout
    assert "\n  demo " in text and [line for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", ["build", "fresh", "lab", "lint", "matrix", "package", "trees"])
def test_help_does_nothing_else(command):
    of_all, of_one = (subprocess.run([REPOSITORY / "dev", *words], text=True, capture_output=True, check=True).stdout
                      for words in (["help"], [command, "--help"]))
    assert of_one == of_all


def test_dev_may_be_exchanged_while_it_runs(tmp_path):
    """As by an update of a checkout in which the tests run: bash reads a script as it goes."""
    (tmp_path / "scripts").mkdir()
    for path in (REPOSITORY / "scripts").glob("*.sh"):
        (tmp_path / "scripts" / path.name).write_bytes(path.read_bytes())
    text = (REPOSITORY / "dev").read_text()
    (tmp_path / "dev").write_text(text)
    (tmp_path / "scripts/sql").write_text(f"#!/bin/sh\nprintf '%s' '{'echo wrong;' * (len(text) // 8)}' >dev\n")
    for name in ("dev", "scripts/sql"):
        (tmp_path / name).chmod(0o755)
    (tmp_path / "monitoring/exporters").mkdir(parents=True)
    (tmp_path / "monitoring/exporters/generate.py").touch()
    outcome = subprocess.run([tmp_path / "dev", "sql"], text=True, capture_output=True)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")
