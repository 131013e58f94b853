"""./dev fresh with several states at a time, where a state is a function that leaves a result."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from machine import REPOSITORY

STUBS = """
. scripts/progress.sh; . scripts/detection.sh; . scripts/fresh.sh
prepare_fresh() { trap 'exit 143' TERM; }
state_facts() { LAYER=''; }
is_available() { true; }
make_state_tree() { true; }
"""
MEET = """
try_state() {
    touch "$CACHE/$1.began"
    # Each waits for the other one, so they pass only at the same time; the third waits for none.
    case $1 in bare) until [ -e "$CACHE/trixie.began" ]; do sleep 0.01; done ;; trixie) until [ -e "$CACHE/bare.began" ]; do sleep 0.01; done ;; esac
    echo "seen in $2"
    printf 'passed\n%s passed\n' "$1" >"$FRESH_LOGS/$1.result"
}
"""


def start(text: str, cache: Path) -> subprocess.Popen[str]:
    """The scripts in a shell, with an own cache."""
    (cache / "fresh").mkdir(exist_ok=True)
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cache), "CACHE": str(cache), "TREES": str(cache / "trees"), "LOG": "/dev/null"}
    return subprocess.Popen(["bash", "-euo", "pipefail", "-c", STUBS + text], cwd=REPOSITORY, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(text: str, cache: Path) -> tuple[int, str]:
    """Its exit status and output."""
    process = start(text, cache)
    output, errors = process.communicate(timeout=60)
    assert errors == ""
    return process.returncode, output


def test_two_states_at_a_time(tmp_path: Path) -> None:
    status, output = run(f"{MEET}run_fresh bare trixie root-home --jobs 2 --only demo", tmp_path)
    lines = output.splitlines()
    assert status == 0
    assert {"bare: seen in demo", "trixie: seen in demo", "root-home: seen in demo"} <= set(lines)
    assert lines[-5:] == ["bare passed", "trixie passed", "root-home passed", "", "3 passed, 0 failed"]


def test_an_ordinary_user_is_tried_alone(tmp_path: Path) -> None:
    states = """
mkdir "$CACHE/running"
try_state() {
    touch "$CACHE/running/$1"
    sleep 0.3
    echo "beside" "$CACHE/running"/*
    rm "$CACHE/running/$1"
    printf 'passed\n%s passed\n' "$1" >"$FRESH_LOGS/$1.result"
}
run_fresh bare user trixie --jobs 2
"""
    status, output = run(states, tmp_path)
    assert status == 0 and f"user: beside {tmp_path}/running/user" in output.splitlines(), output


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("result,row,count", [
    ("failed", "user it is so", "1 passed, 1 failed"),
    ("not run", "user it is so", "1 passed, 0 failed, 1 not run"),
])
def test_results_are_counted(tmp_path: Path, jobs: int, result: str, row: str, count: str) -> None:
    states = f"""try_state() {{
        if [ "$1" = bare ]; then echo passed; else echo '{result}'; fi >"$FRESH_LOGS/$1.result"
        echo "$1 it is so" >>"$FRESH_LOGS/$1.result"
    }}"""
    status, output = run(f"{states}\nrun_fresh bare user --jobs={jobs}", tmp_path)
    assert output.splitlines()[-4:] == ["bare it is so", row, "", count]
    assert status == (1 if result == "failed" else 0)


def test_a_state_without_a_result_has_failed(tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "user.result").write_text("passed\nof an earlier run\n")
    status, output = run('try_state() { [ "$1" = bare ] || exit 3; }; run_fresh user --jobs 2', tmp_path)
    assert status == 1 and "ended before its result" in output and output.endswith("0 passed, 1 failed\n")


def test_a_signal_ends_all_states(tmp_path: Path) -> None:
    states = """
try_state() { trap 'touch "$CACHE/$1.ended"; exit 143' TERM; touch "$CACHE/$1.began"; while :; do sleep 0.01; done; }
run_fresh bare trixie --jobs 2
"""
    process = start(states, tmp_path)
    while len(list(tmp_path.glob("*.began"))) < 2:
        assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert {path.name for path in tmp_path.glob("*.ended")} == {"bare.ended", "trixie.ended"}


@pytest.mark.parametrize("number", ["0", "many", "", "12"])
def test_a_number_that_is_none(tmp_path: Path, number: str) -> None:
    process = start(f"run_fresh bare --jobs '{number}'", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "--jobs takes a number of states from 1 to 9" in errors
