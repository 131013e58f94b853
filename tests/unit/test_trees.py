"""The Debian trees of ./dev fresh and ./dev matrix on a machine that has none yet."""

import subprocess
from pathlib import Path

import pytest
from machine import REPOSITORY

STUBS = """
. scripts/progress.sh; . scripts/detection.sh; . scripts/fresh.sh; . scripts/matrix.sh
bare_tree() { mkdir -p "$TREES/$1"; }
step() { echo "$1"; }
as_root() { "$@"; }
take_trees() { echo trees; exit; }
"""


def bash(text: str, trees: Path) -> subprocess.CompletedProcess[str]:
    """The scripts in a shell, in which a tree is an empty directory and a step only its title."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(trees), "CACHE": str(trees), "TREES": str(trees), "LOG": "/dev/null"}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", STUBS + text], cwd=REPOSITORY, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("state,tree,steps", [("bare", "bookworm", 0), ("user", "fresh-user", 2)])
def test_a_state_that_is_the_suite_itself_needs_no_copy(tmp_path: Path, state: str, tree: str, steps: int) -> None:
    done = bash(f'STATE_TREE=$TREES/{tree} SUITE=bookworm LABEL=Debian; mkdir -p "$TREES/{tree}.unfinished"; make_state_tree {state}', tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == steps and (tmp_path / tree).is_dir()
