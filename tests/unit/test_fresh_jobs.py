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


@pytest.mark.parametrize("alone", ["user", "container"])
def test_who_may_be_refused_memory_is_tried_alone(tmp_path: Path, alone: str) -> None:
    states = """
mkdir "$CACHE/running"
try_state() {
    touch "$CACHE/running/$1"
    sleep 0.3
    echo "beside" "$CACHE/running"/*
    rm "$CACHE/running/$1"
    printf 'passed\n%s passed\n' "$1" >"$FRESH_LOGS/$1.result"
}
"""
    status, output = run(f"{states}run_fresh bare {alone} trixie --jobs 2", tmp_path)
    assert status == 0 and f"{alone}: beside {tmp_path}/running/{alone}" in output.splitlines(), output


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


def in_a_container(cache: Path, text: str) -> tuple[str, list[str]]:
    """The output, and the order in which commands were tried and the pool was set."""
    stubs = f"""
. scripts/progress.sh; . scripts/detection.sh; . scripts/trees.sh; . scripts/fresh.sh
PYTHON=pool POOL_BEFORE='' README_COMMANDS=('./dev demo' './dev test') NETWORK=() TOOLCHAIN_OF_HOST=/opt/rust
as_root() {{ case $1 in pool | true) "$@" ;; esac; }}
pool() {{ shift; echo "pool $*" >>"$CACHE/calls"; [ "$1" != "${{REFUSED:-}}" ] && echo 7; }}
prepare_fresh() {{ trap end_state EXIT; trap 'exit 143' TERM; }}
is_available() {{ true; }}; make_state_tree() {{ true; }}; begin_state() {{ true; }}; alone() {{ true; }}; in_state() {{ true; }}
try_command() {{ echo "$2 of $NEWCOMER" >>"$CACHE/calls"; RESULT='passed 0:01'; }}
{text}
"""
    (cache / "fresh").mkdir()
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cache), "CACHE": str(cache), "TREES": str(cache / "trees"), "LOG": "/dev/null"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", stubs], cwd=REPOSITORY, env=environment, text=True, capture_output=True, timeout=60)
    return done.stdout, (cache / "calls").read_text().splitlines()


def test_a_container_is_tried_with_both_pools_and_the_pool_is_put_back(tmp_path: Path) -> None:
    output, calls = in_a_container(tmp_path, "run_fresh container")
    both = ["demo of root", "test of root"]
    assert calls == ["pool 0", *both, "pool 300", *both, "pool 300", "demo of newcomer", "test of newcomer", "pool --total 7"]
    assert [line.split("  ")[0] for line in output.splitlines() if "passed 0:01" in line] == ["container", "- 300 pages", "- as a user"]


def test_a_signal_puts_the_pool_back(tmp_path: Path) -> None:
    _, calls = in_a_container(tmp_path, 'try_command() { kill -TERM $$; }; run_fresh container')
    assert calls == ["pool 0", "pool --total 7"]


def test_a_host_without_the_pages_fails_the_row(tmp_path: Path) -> None:
    output, calls = in_a_container(tmp_path, "REFUSED=300; run_fresh container --only demo")
    assert calls == ["pool 0", "demo of root", "pool 300", "pool --total 7"]
    assert "failed: the host did not give 300 free huge pages" in output and "0 passed, 1 failed" in output


@pytest.mark.parametrize("number", ["0", "many", "", "12"])
def test_a_number_that_is_none(tmp_path: Path, number: str) -> None:
    process = start(f"run_fresh bare --jobs '{number}'", tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and "--jobs takes a number of states from 1 to 9" in errors
