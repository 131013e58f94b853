"""The check of ./dev lint that the sidecar compiles for other architectures, whose standard libraries need not be there."""

import os
import subprocess
from pathlib import Path

import pytest
from machine import REPOSITORY

TARGETS = ["aarch64-unknown-linux-gnu", "powerpc64le-unknown-linux-gnu"]
PROGRAMS = {
    "rustc": 'echo "$PLACE/$4"',
    "rustup": '[ -z "$FETCHED" ] || { mkdir -p "$PLACE/$3" && touch "$PLACE/$3/libstd-1.rlib"; }; [ -n "$FETCHED" ]',
    "cargo": 'echo "$*" >>"$PLACE/cargo.log"',
}
CHECK = """set -euo pipefail
CACHE=$PLACE LOG=$PLACE/log RUST_FLAGS=()
. scripts/progress.sh && . scripts/rust.sh && . scripts/checks.sh
start_log
check_targets
"""


def check(place: Path, there: list[str], fetched: bool) -> tuple[str, list[str]]:
    """What the check says, and the calls of cargo, where those standard libraries are there and rustup can fetch others."""
    for target in there:
        (place / target).mkdir()
        (place / target / "libstd-0.rlib").touch()
    for name, text in PROGRAMS.items():
        (place / name).write_text(f"#!/bin/sh\n{text}\n")
        (place / name).chmod(0o755)
    done = subprocess.run(["bash", "-c", CHECK], cwd=REPOSITORY, text=True, capture_output=True, check=True, stdin=subprocess.DEVNULL,
                          env={"PATH": f"{place}:{os.environ['PATH']}", "PLACE": str(place), "FETCHED": "yes" if fetched else ""})
    log = place / "cargo.log"
    return done.stdout, log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize(("there", "fetched"), [(TARGETS, False), (TARGETS[:1], True), ([], True)])
def test_both_are_checked_where_they_are_there_or_can_be_fetched(tmp_path, there, fetched):
    output, [call] = check(tmp_path, there, fetched)
    assert call.endswith(" ".join(f"--target={target}" for target in TARGETS)) and "skipped" not in output


def test_what_can_not_be_fetched_is_skipped_and_named(tmp_path):
    output, [call] = check(tmp_path, TARGETS[1:], fetched=False)
    assert TARGETS[0] not in call and f"not checked for {TARGETS[0]}: skipped" in output


def test_nothing_is_compiled_without_any(tmp_path):
    output, calls = check(tmp_path, [], fetched=False)
    assert calls == [] and output.count("skipped") == 2
