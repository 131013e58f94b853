"""META.json as PGXN takes it: each field is one of its specification 1.0.0, with a value that is allowed there."""

import io
import json
import re
import shutil
import subprocess
import tarfile

import pytest
from machine import REPOSITORY

TERM = r"[^/\\\s]{2,}"
NUMBER = r"(0|[1-9]\d*)"
VERSION = rf"{NUMBER}\.{NUMBER}\.{NUMBER}(-[0-9A-Za-z.-]+)?"
ADDRESS = r"https?://[^\s/]+/\S+"
RULES = {
    "name": TERM,
    "version": VERSION,
    "abstract|description|maintainer|generated_by": ".+",
    "license": "postgresql",
    "release_status": "stable|testing|unstable",
    "meta-spec/version": r"1\.0\.0",
    "meta-spec/url": r"https?://pgxn\.org/meta/spec\.txt",
    f"provides/{TERM}/version": VERSION,
    f"provides/{TERM}/(file|docfile)": r"[^/\s].+",
    f"provides/{TERM}/abstract": ".+",
    f"prereqs/(configure|build|test|runtime|develop)/(requires|recommends|suggests|conflicts)/{TERM}": rf"(([=!]=|[<>]=?)\s*)?{VERSION}|0",
    "resources/homepage|resources/bugtracker/web|resources/repository/(url|web)": ADDRESS,
    "resources/bugtracker/mailto": r"\S+@\S+",
    "resources/repository/type": "[a-z]+",
    r"tags/\d+": r"[^/\\\x00-\x1f]{2,255}",
}
"""Paths of values, and what these may be. We have one licence, and PGXN's list has it."""
REQUIRED = ["name", "version", "abstract", "maintainer", "license", "meta-spec/version", f"provides/{TERM}/file", f"provides/{TERM}/version"]
RELEASE = {"PROJECT_URL": "https://example.invalid/pg", "DEBFULLNAME": "A Name", "DEBEMAIL": "name@example.invalid"}


def values(part, path=""):
    """Each value below, with its path."""
    if isinstance(part, str):
        yield path[1:], part
    else:
        for key, below in part.items() if isinstance(part, dict) else enumerate(part):
            yield from values(below, f"{path}/{key}")


def faults(meta: dict) -> list[str]:
    found = dict(values(meta))
    wrong = [path for path, value in found.items()
             if not any(re.fullmatch(rule, path) and re.fullmatch(allowed, value) for rule, allowed in RULES.items())]
    return wrong + [rule for rule in REQUIRED if not any(re.fullmatch(rule, path) for path in found)]


@pytest.fixture
def metadata(pg_config, tmp_path):
    """Makes META.json with some variables of make."""
    def made(**variables: str) -> dict:
        for name in ("Makefile", "META.json.in", "Cargo.toml", "MAINTAINERS", "scripts/maintainer"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy(REPOSITORY / name, tmp_path / name)
        (tmp_path / "src").mkdir(exist_ok=True)
        words = [f"{name}={value}" for name, value in {"PG_CONFIG": str(pg_config), **variables}.items()]
        subprocess.run(["make", "-C", tmp_path, "META.json", *words], check=True, capture_output=True)
        return json.loads((tmp_path / "META.json").read_text())
    return made


@pytest.mark.parametrize(("variables", "resources", "maintainer"), [
    ({}, None, "the pg_hugepages developers"),
    (RELEASE, {"homepage": "https://example.invalid/pg", "bugtracker": {"web": "https://example.invalid/pg/issues"},
               "repository": {"url": "https://example.invalid/pg.git", "type": "git"}}, "A Name <name@example.invalid>"),
])
def test_metadata_for_pgxn(metadata, variables, resources, maintainer):
    meta = metadata(**variables)
    assert faults(meta) == []
    assert meta.get("resources") == resources and meta["maintainer"] == maintainer
    assert meta["version"] == meta["provides"]["pg_hugepages"]["version"]
    assert re.search(rf'^version = "{re.escape(meta["version"])}"$', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE)


def test_its_files_are_in_the_archive(metadata):
    archived = archived_files()
    assert {path for key, path in values(metadata()["provides"]) if key.endswith("file")} <= set(archived)


def archived_files() -> list[str]:
    """What `git archive` packs, by the attributes as they are on disk."""
    archive = subprocess.run(["git", "archive", "--worktree-attributes", "HEAD"], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        return [file.name for file in files if file.isfile()]


def test_the_archive_is_without_what_only_a_clone_needs():
    archived = archived_files()
    # But the pages that README and CONTRIBUTING link to.
    pages = {"tests/README.md", "tests/tested-on.md"}
    assert {name for name in archived if name.startswith(("tests/", ".github/", ".ci/"))} == pages
    assert {"Makefile", "Cargo.lock", "pg_hugepages.control", "src/lib.rs"} <= set(archived)


def test_a_version_before_a_release_is_for_testing(metadata):
    meta = metadata(EXTVERSION="2.0.0-rc1")
    assert meta["release_status"] == "testing" and faults(meta) == []


@pytest.mark.parametrize(("path", "value"), [
    ("version", "1.0"), ("license", "PostgreSQL"), ("release_status", "released"), ("meta-spec/version", "1"), ("name", "a/b"),
    ("provides/pg_hugepages/version", "01.0.0"), ("prereqs/runtime/requires/PostgreSQL", "15"), ("prereqs/run/requires/PostgreSQL", "15.0.0"),
    ("resources/homepage", "example"), ("keywords", "memory"), ("abstract", ""),
])
def test_a_fault_is_found(metadata, path, value):
    meta = metadata(**RELEASE)
    *parents, last = path.split("/")
    part = meta
    for name in parents:
        part = part.setdefault(name, {})
    part[last] = value
    assert path in faults(meta)


def test_a_missing_field_is_found(metadata):
    meta = metadata()
    del meta["provides"]["pg_hugepages"]["file"], meta["abstract"]
    assert faults(meta) == ["abstract", f"provides/{TERM}/file"]
