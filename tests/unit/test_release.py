"""./dev release: what is in the way of a release is told, all of it, and a dry run makes each of its files."""

import os
import re
import shutil
import subprocess

import pytest
from machine import REPOSITORY

ROW = "| PostgreSQL {0} | PostgreSQL {0}.1, Linux 6.1 | 2027-01-01 | `./dev matrix {0}` | 9 | 8 | 1 | 0 |\n"
FILES = {
    "Cargo.toml": '[workspace.package]\nversion = "1.2.0"\n',
    "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- later\n\n## 1.2.0 - 2027-01-01\n\n- now\n\n## 1.1.0 - 2026-12-01\n\n- before\n",
    "MAINTAINERS": "A Name <name@example.invalid>\n",
    "sql/released.sha256": f"{'0' * 64}  pg_hugepages--1.2.0.sql\n",
    "tests/tested-on.md": f"# What\n\n{ROW.format(15)}{ROW.format(16)}",
    "scripts/sql": "#!/bin/sh\n",
}
RELEASE = """set -euo pipefail
CACHE=$PWD/../cache LOG=/dev/null SUPPORTED='15 16'
say() { printf '%s\\n' "$@"; }
fail() { say "dev: $*" && exit 1; }
. scripts/release.sh
run_release "$@"
"""
DEV = """#!/bin/sh
echo "${PGDG_SUITE:-} $*" >>../calls
case "$*" in package*) mkdir -p ../cache/packages/18 ../cache/packages/sidecar;; esac
case "${PGDG_SUITE:-} $*" in
    ' package') touch ../cache/packages/18/postgresql-18-pg-hugepages_1.2.0-0_amd64.deb ../cache/packages/18/hugepage-sidecar_1.2.0-0_amd64.deb ;;
    *' package') rm ../cache/packages/18/*
        touch "../cache/packages/18/postgresql-18-pg-hugepages_1.2.0-0~${PGDG_SUITE}1_amd64.deb" "../cache/packages/18/x-$PGDG_SUITE-image.tar.gz" ;;
    ' package sidecar') touch ../cache/packages/sidecar/hugepage-sidecar-1.2.0-1.x86_64.rpm ../cache/packages/sidecar/hugepage-sidecar.tar.gz ;;
    ' image') mkdir -p ../cache/packages/image && touch ../cache/packages/image/hugepage-sidecar-1.2.0-x86_64.oci.tar ;;
    ' dist') touch pg_hugepages-1.2.0.zip pg_hugepages-1.2.0-vendored.tar.xz ;;
    ' sbom') mkdir -p ../cache/sbom && touch ../cache/sbom/hugepage-sidecar.cdx.json ;;
    ' book') mkdir -p build/book && touch build/book/index.html ;;
    ' reproducible') exit "${DIFFERS:-0}" ;;
esac
"""


@pytest.fixture
def project(tmp_path):
    """A committed project that may be released."""
    root = tmp_path / "project"
    for name, text in {**FILES, "dev": DEV, ".gitignore": "/build\n*.zip\n*.xz\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("scripts/maintainer", "scripts/tested-on", "scripts/release.sh", "tests/harness/__init__.py", "tests/harness/markers.py"):
        if (REPOSITORY / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, root / name)
    (root / "dev").chmod(0o755)
    (root / "scripts/sql").chmod(0o755)
    commit(root)
    return root


def commit(root) -> None:
    author = ["-c", "user.name=a test", "-c", "user.email=test@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "--allow-empty", "-m", "a state"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def release(root, *words: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PROJECT_URL": "https://example.invalid/pg", **variables}
    return subprocess.run(["bash", "-c", RELEASE, "bash", *words], cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment)


@pytest.mark.parametrize("tag", [[], ["v1.2.0"]])
def test_nothing_is_in_the_way(project, tag):
    done = release(project, "--check", *tag)
    assert done.returncode == 0 and "missing:" not in done.stdout, done.stdout


@pytest.mark.parametrize(("name", "text", "said"), [
    ("MAINTAINERS", "# nobody\n", "a name and an address in MAINTAINERS"),
    ("CHANGELOG.md", "## Unreleased\n\n- all\n", 'the section "## 1.2.0 - DATE"'),
    ("CHANGELOG.md", "## 1.2.0 - soon\n", 'the section "## 1.2.0 - DATE"'),
    ("sql/released.sha256", "", "sql/released.sha256"),
    ("tests/tested-on.md", f"# What\n{ROW.format(16)}", "rows of PostgreSQL 15 in tests/tested-on.md"),
    ("tests/tested-on.md", FILES["tests/tested-on.md"].replace("| 0 |", "| 1 |", 1), "rows of PostgreSQL 15 in tests/tested-on.md"),
    ("scripts/sql", "#!/bin/sh\nexit 1\n", "SQL scripts that are what src/ has"),
])
def test_what_is_missing_stops_it(project, name, text, said):
    (project / name).write_text(text)
    commit(project)
    done = release(project, "--check")
    assert done.returncode == 1 and done.stdout.count("missing:") == 1 and said in done.stdout, done.stdout


def test_of_several_all_are_told(project):
    (project / "MAINTAINERS").write_text("")
    done = release(project, "--check", "v1.2.1", PROJECT_URL="")
    assert done.returncode == 1
    assert [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("missing:")] == [
        ["a", "tag"], ["a", "name"], ["the", "project's"], ["a", "commit"]]


def test_a_dry_run_makes_every_file(project, tmp_path):
    done = release(project, "--dry-run")
    assert done.returncode == 0, done.stdout
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == [" package", "bookworm package", "trixie package", " package sidecar", " image", " dist", " sbom", " supply-chain --advisories",
                     " reproducible", " book"]
    files = {path.name for path in (tmp_path / "cache/release").iterdir()}
    assert files == {
        "postgresql-18-pg-hugepages_1.2.0-0_amd64.deb", "hugepage-sidecar_1.2.0-0_amd64.deb",
        "postgresql-18-pg-hugepages_1.2.0-0.bookworm1_amd64.deb", "postgresql-18-pg-hugepages_1.2.0-0.trixie1_amd64.deb",
        "x-bookworm-image.tar.gz", "x-trixie-image.tar.gz", "hugepage-sidecar-1.2.0-1.x86_64.rpm", "hugepage-sidecar.tar.gz",
        "hugepage-sidecar-1.2.0-x86_64.oci.tar",
        "pg_hugepages-1.2.0.zip", "pg_hugepages-1.2.0-vendored.tar.xz", "hugepage-sidecar.cdx.json", "book.tar.gz", "notes.md", "SHA256SUMS"}
    assert (tmp_path / "cache/release/notes.md").read_text().strip() == "- now"
    assert len((tmp_path / "cache/release/SHA256SUMS").read_text().splitlines()) == len(files) - 1


def test_a_dry_run_goes_on_after_a_failure_and_fails(project, tmp_path):
    done = release(project, "--dry-run", DIFFERS="1")
    assert done.returncode == 1 and re.search(r"^failed +0 min  the same library from two places$", done.stdout, re.M), done.stdout
    assert (tmp_path / "cache/release/book.tar.gz").exists()


def test_the_row_of_a_major_has_what_its_run_counted(tmp_path):
    """With what was open, and with what failed."""
    (tmp_path / "row").write_text("15     15.20                  ok (9 s)   4 passed (2 s)   190 passed, 1 failed, 3 skipped (80 s)\n")
    (tmp_path / "regress.log").write_text("....\n============= 4 passed, 2 deselected in 1.0s =============\n")
    (tmp_path / "scenarios.log").write_text("host: 3 passed\n\n190 passed, 1 failed, 3 skipped\n")
    script = {"__name__": "tested_on", "__file__": str(REPOSITORY / "scripts/tested-on")}
    exec(compile((REPOSITORY / "scripts/tested-on").read_text(), "tested-on", "exec"), script)
    assert script["row"]("15", tmp_path, "6.1.0", "2027-01-01") == [
        "PostgreSQL 15", "PostgreSQL 15.20, Linux 6.1.0", "2027-01-01", "`./dev matrix 15`", "198", "194", "3", "1"]
