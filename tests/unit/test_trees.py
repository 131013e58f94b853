"""The Debian trees of ./dev fresh and ./dev matrix on a machine that has none yet."""

import subprocess
from pathlib import Path

import pytest
from machine import REPOSITORY

STUBS = """
. scripts/progress.sh; . scripts/detection.sh; . scripts/trees.sh; TREES=$CACHE; . scripts/fresh.sh; . scripts/matrix.sh
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


MATRIX = """
SUPPORTED='15 16 17 18 19'; find_toolchain() { :; }; take_trees() { :; }
apt_archive() { echo https://ubuntu.example.org; }
tree_for() { :; }; stop_painter() { :; }; say() { :; }
in_major() { echo "${@:2}" >>"$CACHE/ran.$1"; }
"""


@pytest.mark.parametrize("arguments, ran", [
    ("18 --short 17 19", {"18": ["build whole", "test whole"], "17": ["build short", "test short"], "19": ["build short", "test short"]}),
    ("--compile 18 --short 17", {"18": ["build whole"], "17": ["build short"]}),
    ("--short 19", {"19": ["build short", "test short"]}),
    ("", {major: ["build whole", "test whole"] for major in ("15", "16", "17", "18", "19")}),
])
def test_each_major_has_its_scope(tmp_path: Path, arguments: str, ran: dict[str, list[str]]) -> None:
    done = bash(f'{MATRIX} step() {{ "${{@:2}}"; }}; run_matrix {arguments}', tmp_path)
    assert done.returncode == 0, done
    found = {path.suffix[1:]: path.read_text().replace("scripts/tree/", "").splitlines() for path in tmp_path.glob("ran.*")}
    assert found == ran and f"{len(ran)} passed, 0 failed" in done.stdout


def test_without_an_archive_of_ubuntu_its_major_is_left_out(tmp_path: Path) -> None:
    done = bash(f'{MATRIX} apt_archive() {{ :; }}; step() {{ "${{@:2}}"; }}; run_matrix', tmp_path)
    assert done.returncode == 0 and "4 passed, 0 failed" in done.stdout, done
    assert {path.suffix[1:] for path in tmp_path.glob("ran.*")} == {"15", "17", "18", "19"}


@pytest.mark.parametrize("variable, kept", [("DISCARD_TREES=yes", ["bookworm"]), ("DISCARD_TREES=", ["bookworm", "pg15", "pg16"])])
def test_a_tree_is_discarded_once_its_packages_were_tried(tmp_path: Path, variable: str, kept: list[str]) -> None:
    (tmp_path / "bookworm").mkdir()
    done = bash(f"""{MATRIX} . scripts/package.sh; {variable} DEBFULLNAME=a DEBEMAIL=b
        release_target() {{ echo musl; }}; TOOLCHAIN=() TOOLCHAIN_ENV=(env)
        tree_for() {{ mkdir "$TREES/pg$1"; }}; step() {{ shift; "$@"; }}; stat() {{ :; }}
        in_tree() {{ :; }}
        run_package 15 16""", tmp_path)
    assert done.returncode == 0 and "2 passed, 0 failed" in done.stdout, done
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and "." not in path.name and path.name != "packages") == kept


@pytest.mark.parametrize("change, same", [("true", "yes"), ("echo b >b/file", "no"), ("chmod +x b/file", "no"), ("touch b/new", "no"),
                                          ("ln -sf elsewhere b/link", "no"), ("touch -d 2001-01-01 b/file", "yes")])
def test_a_copy_of_the_same_is_kept(tmp_path: Path, change: str, same: str) -> None:
    done = bash(f"""cd {tmp_path} && mkdir a && echo a >a/file && ln -s file a/link && cp -a a b && {change}
        if is_the_same a b; then echo yes; else echo no; fi""", tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [same]), done
