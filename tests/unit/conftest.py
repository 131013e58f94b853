"""What the Makefile asks of a PostgreSQL."""

import pytest

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


@pytest.fixture
def pg_config(tmp_path):
    """One without a server, and PGXS without rules of its own."""
    (tmp_path / "pgxs.mk").write_text(PGXS)
    program = tmp_path / "pg_config"
    program.write_text(PG_CONFIG.format(pgxs=tmp_path / "pgxs.mk"))
    program.chmod(0o755)
    return program
