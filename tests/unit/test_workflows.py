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
    assert {"ci.yml", "publish.yml", "release.yml"} <= {path.name for path in WORKFLOWS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_a_commit_with_its_version_beside_it(path):
    """A tag can be moved to other code, a commit cannot."""
    used = [line.split("uses:", 1)[1].strip() for line in path.read_text().splitlines() if re.match(r"\s*(?:- )?uses:", line)]
    assert used
    assert [action for action in used if not action.startswith("./") and not PINNED.fullmatch(action)] == []


def test_a_version_is_one_commit_in_all_workflows():
    used = {use for path in WORKFLOWS for use in re.findall(r"uses: (\S+ # \S+)", path.read_text())}
    assert len(used) == len({use.partition("@")[0] for use in used})


def test_ci_asks_for_advisories_and_compiles_the_fuzz_targets():
    text = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    assert "./dev supply-chain --advisories\n" in text
    assert "cargo build --locked --manifest-path tests/fuzz/Cargo.toml\n" in text


def test_lint_has_the_rust_whose_warnings_are_known():
    """With the newest, CI failed as soon as there was one with another warning. It is the one of releases."""
    oldest = re.search(r'^rust-version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE).group(1)
    text = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    assert 'rust=$(scripts/install-rust --version)\n' in text and f'rust: ["{oldest}", stable]' in text
    pinned = subprocess.run([REPOSITORY / "scripts/install-rust", "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    assert re.fullmatch(rf"{re.escape(oldest)}\.\d+", pinned)
    # Named nowhere else: not in a workflow, and no release takes whatever is the newest.
    assert [path.name for path in WORKFLOWS if pinned in path.read_text()] == []
    assert "stable" not in (REPOSITORY / ".github/workflows/release.yml").read_text()


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
    for part in ("./dev package\n", "PGDG_SUITE=$suite ./dev package\n", "./dev release --check \"$GITHUB_REF_NAME\"\n", "./dev package sidecar\n", "./dev dist\n", "./dev sbom\n", "ubuntu-24.04-arm", "actions/attest@",
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


def test_the_draft_has_the_section_of_the_changelog(tmp_path):
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    assert re.findall("^## (.+)", changes, re.M)[0] == "Unreleased", "no date of a release that has not been"
    (tmp_path / "CHANGELOG.md").write_text(changes.replace("## Unreleased", f"## {version()} - 2027-01-01"))
    (tmp_path / "release").mkdir()
    (tmp_path / "release/file.deb").touch()
    (tmp_path / "gh").write_text('#!/bin/sh\necho "$@" >calls\n')
    (tmp_path / "gh").chmod(0o755)
    name = "A draft with the changelog's section, for a person to publish"
    assert run_step(name, f"v{version()}", tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}") == 0
    notes = (tmp_path / "notes.md").read_text()
    assert "**The extension**" in notes and not notes.startswith("## ")
    assert (tmp_path / "calls").read_text() == f"release create v{version()} --draft --verify-tag --notes-file notes.md release/file.deb\n"


def test_files_have_the_names_that_github_gives_them(tmp_path):
    """It writes a dot for a tilde, and SHA256SUMS is made before."""
    (tmp_path / "release").mkdir()
    for name in ("a_1.0.0-0~trixie1_amd64.deb", "b.rpm"):
        (tmp_path / "release" / name).write_text(name)
    assert run_step("Under the names that GitHub gives files with a tilde", "v1", tmp_path) == 0
    assert sorted(path.name for path in (tmp_path / "release").iterdir()) == ["SHA256SUMS", "a_1.0.0-0.trixie1_amd64.deb", "b.rpm"]
    assert (tmp_path / "release/SHA256SUMS").read_text().split()[1::2] == ["a_1.0.0-0.trixie1_amd64.deb", "b.rpm"]


BUILDAH = """#!/bin/sh
echo "$*" | sed "s#$WORK[^ ]*/##g" >>"$WORK/calls"
case $1 in build) for last; do :; done; [ -f "$last/Dockerfile" ] ;; esac
"""


def test_images_of_both_architectures_are_one_manifest(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    made = (REPOSITORY / "packaging/image/Dockerfile.in").read_text()
    for major, suite, architecture in (("18", "trixie", "amd64"), ("18", "trixie", "arm64"), ("19", "bookworm", "amd64")):
        (tmp_path / "Dockerfile").write_text(made.replace("@VERSION@", "1.0.0").replace("@MAJOR@", major).replace("@OS@", suite))
        name = f"pg_hugepages-1.0.0-0.{suite}1-{major}-{architecture}-image.tar.gz"
        subprocess.run(["tar", "-czf", files / name, "-C", tmp_path, "Dockerfile"], check=True)
    for machine in ("x86_64", "aarch64"):
        (files / f"hugepage-sidecar-1.0.0-{machine}.oci.tar").touch()
    (tmp_path / "buildah").write_text(BUILDAH)
    (tmp_path / "buildah").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "WORK": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([REPOSITORY / "packaging/image/push", files, "r.invalid/o"], text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done
    tags = ["r.invalid/o/pg_hugepages:1.0.0-18-trixie", "r.invalid/o/pg_hugepages:1.0.0-19-bookworm"]
    ours = ["r.invalid/o/hugepage-sidecar:1.0.0", *tags]
    assert sorted(done.stdout.split()) == ours
    calls = (tmp_path / "calls").read_text().splitlines()
    assert sorted(call for call in calls if call.startswith("manifest create")) == [f"manifest create {tag}" for tag in ours]
    assert [call.split()[2] for call in calls if call.startswith("manifest add")] == [ours[0]] * 2
    built = [call.split()[2:6] for call in calls if call.startswith("build ")]
    assert sorted(built) == sorted([["--platform", "linux/amd64", "--manifest", tags[0]], ["--platform", "linux/arm64", "--manifest", tags[0]],
                                    ["--platform", "linux/amd64", "--manifest", tags[1]]])
    assert sorted(call for call in calls if call.startswith("manifest push")) == [f"manifest push --all {tag} docker://{tag}" for tag in ours]
    empty = subprocess.run([REPOSITORY / "packaging/image/push", tmp_path / "nothing", "r.invalid/o"], capture_output=True, env=environment)
    assert empty.returncode != 0
