"""The commands that the documents print for building, as they stand: make and cargo take them. ./dev dist compiles by one."""

import os
import re
import subprocess

import pytest
from machine import REPOSITORY

DOCUMENTS = ["packaging/README.md", "docs/install.md"]
PRINTED_PG_CONFIG = "/usr/lib/postgresql/17/bin/pg_config"


def commands(document: str, program: str) -> list[str]:
    """Lines of the indented blocks that run the program, each with those that continue it."""
    text = (REPOSITORY / document).read_text().replace("\\\n", " ")
    return [line.strip() for line in re.findall(rf"^    +((?:sudo |\w+=\S+ )*{program} .*|{program})$", text, re.MULTILINE)]


@pytest.mark.parametrize(("document", "command"), [(document, command) for document in DOCUMENTS for command in commands(document, "make")])
def test_make_takes_it(document, command, pg_config, tmp_path):
    words = command.removeprefix("sudo ").replace(PRINTED_PG_CONFIG, str(pg_config)).replace("DESTDIR=...", f"DESTDIR={tmp_path}")
    made = subprocess.run(["sh", "-c", words.replace("make", "make --dry-run", 1)], cwd=REPOSITORY, text=True,
                          env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert made.returncode == 0, made.stdout
    target = next((word for word in words.split()[1:] if "=" not in word), "all")
    assert target == "installcheck" or re.search({"all": "cargo build", "install": "install .*hugepage", "uninstall": "rm -f"}[target], made.stdout)


@pytest.mark.parametrize("command", commands("packaging/README.md", "cargo"))
def test_cargo_takes_it(command, tmp_path):
    """Up to what would be compiled: rust-version, features and the lock file are in order. The crates are there or are fetched."""
    words = command.replace(" --offline", "") + " --unit-graph -Z unstable-options"
    planned = subprocess.run(["sh", "-c", words], cwd=REPOSITORY, text=True, capture_output=True,
                             env={**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_DIR": str(tmp_path)})
    assert planned.returncode == 0, planned.stderr
    assert '"name":"pg_hugepages"' in planned.stdout


def test_there_are_such_commands():
    assert len(commands("packaging/README.md", "make")) == 2 and len(commands("packaging/README.md", "cargo")) == 1
    assert len(commands("docs/install.md", "make")) == 4


def test_nothing_names_a_person_who_is_not_there():
    """Packages are somebody's: DEBFULLNAME and DEBEMAIL say whose."""
    files = [path for path in (REPOSITORY / "packaging").rglob("*") if path.is_file()]
    assert len(files) > 30 and [str(path) for path in files if re.search(rb"@example\.|nobody@", path.read_bytes())] == []
    assert "\nMaintainer: @MAINTAINER@\n" in (REPOSITORY / "packaging/debian/control.in").read_text()


@pytest.mark.parametrize(("tag", "version"), [("v1.0.0", "1.0.0"), ("v1.10.2", "1.10.2"), ("v2.0.0-rc1", None), ("latest", None)])
def test_the_watch_file_finds_releases(tag, version):
    pattern = re.search(r"@PROJECT_URL@/tags (\S+)", (REPOSITORY / "packaging/debian/watch").read_text()).group(1)
    found = re.fullmatch(pattern, f"https://example.invalid/pg/archive/refs/tags/{tag}.tar.gz")
    assert (found and found.group(1)) == version


def test_an_archive_names_its_repository(pg_config, tmp_path):
    """What make dist runs on the copy of Cargo.toml that it packs."""
    planned = subprocess.run(["make", "--dry-run", "dist", f"PG_CONFIG={pg_config}", "PROJECT_URL=https://example.invalid/pg"],
                             cwd=REPOSITORY, check=True, text=True, capture_output=True).stdout
    [edit] = re.findall(r"sed -i .*repository.*", planned)
    copy = tmp_path / edit.split()[-1]
    copy.parent.mkdir(parents=True)
    copy.write_bytes((REPOSITORY / "Cargo.toml").read_bytes())
    subprocess.run(["sh", "-c", edit], cwd=tmp_path, check=True)
    assert copy.read_text().count('\n[package]\nrepository = "https://example.invalid/pg"\n') == 1
