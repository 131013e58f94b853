"""What the workflows of .github run is what was looked at: nothing that somebody else can exchange."""

import os
import re
import subprocess
import textwrap

import pytest
from machine import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github/workflows").glob("*.y*ml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
PIPED_TO_A_SHELL = re.compile(r"\b(?:curl|wget)\b.*\|\s*(?:sudo\s+)?(?:ba|da)?sh\b")


def test_there_are_workflows():
    assert {"ci.yml", "release.yml"} <= {path.name for path in WORKFLOWS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_a_commit_with_its_version_beside_it(path):
    """A tag can be moved to other code, a commit cannot."""
    used = [line.split("uses:", 1)[1].strip() for line in path.read_text().splitlines() if re.match(r"\s*(?:- )?uses:", line)]
    assert used
    assert [action for action in used if not action.startswith("./") and not PINNED.fullmatch(action)] == []


RUNS_ON = {
    "actions/checkout": {"v7.0.1": "node24"},
    "actions/upload-artifact": {"v7.0.0": "node24"},
    "actions/download-artifact": {"v8.0.1": "node24"},
    "actions/attest": {"v4.2.2": "node24"},
    "Swatinem/rust-cache": {"v2.9.2": "node24"},
}
"""`runs.using` of each action's action.yml at its version, read when the version was pinned."""
OFFERED = {"node24"}
"""The generations of Node that GitHub's runners have: node20 went in September 2026."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_asks_for_a_node_that_runners_have(path):
    """Who changes a version looks up its Node, and adds it above."""
    used = re.findall(r"uses: ([\w./-]+)@[0-9a-f]{40} # (v[\d.]+)$", path.read_text(), re.MULTILINE)
    assert used
    assert {(action, version) for action, version in used if RUNS_ON.get(action, {}).get(version) not in OFFERED} == set()


def test_a_version_is_one_commit_in_all_workflows():
    used = {use for path in WORKFLOWS for use in re.findall(r"uses: (\S+ # \S+)", path.read_text())}
    assert len(used) == len({use.partition("@")[0] for use in used})


def test_ci_asks_for_advisories_and_compiles_the_fuzz_targets():
    text = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    assert "./dev supply-chain --advisories\n" in text
    assert "cargo build --locked --manifest-path tests/fuzz/Cargo.toml\n" in text


def test_lint_has_the_rust_whose_warnings_are_known():
    """With the newest, CI failed as soon as there was one with another warning."""
    oldest = re.search(r'^rust-version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE).group(1)
    text = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    [used] = re.findall(r"rustup toolchain install (\S+) .*rustfmt,clippy && rustup default (\S+)\n", text)
    assert used == (oldest, oldest) and f'rust: ["{oldest}", stable]' in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_trees_of_packages_fit_on_a_runner(path):
    """Those of all majors and suites are 40 GB with what is compiled for them; a runner has 14."""
    for job in re.split(r"^  (?=\w+:$)", path.read_text(), flags=re.MULTILINE):
        assert ("./dev package\n" in job) == ('      DISCARD_TREES: "yes"\n' in job)
        assert len(re.findall("(?<!trees remove\n {12})PGDG_SUITE=", job)) == 0


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nothing_downloaded_goes_to_a_shell(path):
    text = path.read_text().replace("\\\n", " ")
    assert [line for line in text.splitlines() if PIPED_TO_A_SHELL.search(line)] == []
    assert not re.search(r"\b(?:curl|wget)\b.*https://", text)


def test_a_release_has_all_that_dev_package_makes_on_both_architectures():
    text = (REPOSITORY / ".github/workflows/release.yml").read_text()
    for part in ("./dev package\n", "PGDG_SUITE=$suite ./dev package\n", "DEBEMAIL: ${{ vars.DEBEMAIL }}", "./dev package sidecar\n", "./dev dist\n", "./dev sbom\n", "ubuntu-24.04-arm", "actions/attest@",
                 "SHA256SUMS", "PROJECT_URL"):
        assert part in text, part


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_bare_container_gets_what_its_scripts_run_in(path):
    """./dev installs what it needs; a script of its own does not."""
    for job in re.split(r"^  (?=\w+:$)", path.read_text(), flags=re.MULTILINE):
        if "image: debian:" not in job:
            continue
        installed = re.search(r"apt-get install (.*)", job).group(1).split()
        for script in re.findall(r"(?<![\w./-])scripts/[\w-]+", job):
            interpreter = re.split(r"[/ ]", (REPOSITORY / script).read_text().splitlines()[0])[-1]
            assert interpreter in {"sh", "bash", *installed}, script


def test_the_form_for_faults_asks_for_what_is_known_of_the_host():
    assert "hugepage-sidecar capture" in (REPOSITORY / ".github/ISSUE_TEMPLATE/bug.yml").read_text()


def test_the_patterns_find_what_they_are_for():
    assert not PINNED.fullmatch("actions/checkout@v4") and not PINNED.fullmatch("actions/checkout@" + "a" * 40)
    assert PIPED_TO_A_SHELL.search("curl -sSf https://sh.rustup.rs | sh -s -- -y")


def step(name: str) -> str:
    """The script of a step of the release's workflow."""
    text = (REPOSITORY / ".github/workflows/release.yml").read_text()
    block = re.search(rf"- name: {re.escape(name)}\n(?: {{8}}env:\n(?: {{10}}.*\n)+)? {{8}}run: \|\n((?: {{10}}.*\n)+)", text)
    return textwrap.dedent(block.group(1))


def run_step(name: str, tag: str, directory, **variables: str) -> int:
    environment = {**os.environ, "GITHUB_REF_NAME": tag, **variables}
    return subprocess.run(["bash", "-e", "-c", step(name)], cwd=directory, env=environment, capture_output=True).returncode


def version() -> str:
    return re.search(r'^version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE).group(1)


def test_a_tag_that_is_not_the_version_stops_the_release(tmp_path):
    """So does a version whose script may still change: CONTRIBUTING.md, step 3 of a release."""
    name = "The tag is the version in Cargo.toml, and its SQL is released"
    (tmp_path / "Cargo.toml").write_bytes((REPOSITORY / "Cargo.toml").read_bytes())
    (tmp_path / "sql").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/sql").symlink_to("/bin/true")
    released = tmp_path / "sql/released.sha256"
    released.write_text(f"{'0' * 64}  pg_hugepages--{version()}.sql\n")
    assert run_step(name, f"v{version()}", tmp_path) == 0
    assert run_step(name, "v0.0.1", tmp_path) != 0 and run_step(name, "v1", tmp_path) != 0
    released.write_text("")
    assert run_step(name, f"v{version()}", tmp_path) != 0


def test_the_draft_has_the_section_of_the_changelog(tmp_path):
    (tmp_path / "CHANGELOG.md").write_bytes((REPOSITORY / "CHANGELOG.md").read_bytes())
    (tmp_path / "release").mkdir()
    (tmp_path / "release/file.deb").touch()
    (tmp_path / "gh").write_text('#!/bin/sh\necho "$@" >calls\n')
    (tmp_path / "gh").chmod(0o755)
    name = "A draft with the changelog's section, for a person to publish"
    assert run_step(name, f"v{version()}", tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}") == 0
    notes = (tmp_path / "notes.md").read_text()
    assert "**The extension**" in notes and not notes.startswith("## ")
    assert (tmp_path / "calls").read_text() == f"release create v{version()} --draft --verify-tag --notes-file notes.md release/file.deb\n"
