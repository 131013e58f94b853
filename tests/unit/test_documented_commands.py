"""The commands that the documents print for building, as they stand: make and cargo take them. ./dev dist compiles by one."""

import os
import re
import subprocess

import pytest
from machine import REPOSITORY

DOCUMENTS = ["packaging/README.md", "docs/install.md"]
PRINTED_PG_CONFIG = "/usr/lib/postgresql/17/bin/pg_config"
PG_CONFIG = """#!/bin/sh
case $1 in
    --version) echo "PostgreSQL 17.1" ;;
    --pgxs) echo "{pgxs}" ;;
    *) echo /usr/share ;;
esac
"""
PGXS = """MKDIR_P = mkdir -p
INSTALL_PROGRAM = install
INSTALL_DATA = install
INSTALL_SHLIB = install
datadir = /usr/share
pkglibdir = /usr/lib
install uninstall installcheck: ; @:
.PHONY: install uninstall installcheck
"""


def commands(document: str, program: str) -> list[str]:
    """Lines of the indented blocks that run the program, each with those that continue it."""
    text = (REPOSITORY / document).read_text().replace("\\\n", " ")
    return [line.strip() for line in re.findall(rf"^    +((?:sudo |\w+=\S+ )*{program} .*|{program})$", text, re.MULTILINE)]


@pytest.fixture
def pg_config(tmp_path):
    """One without a server, and PGXS without rules of its own."""
    (tmp_path / "pgxs.mk").write_text(PGXS)
    program = tmp_path / "pg_config"
    program.write_text(PG_CONFIG.format(pgxs=tmp_path / "pgxs.mk"))
    program.chmod(0o755)
    return program


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
