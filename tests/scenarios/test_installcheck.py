"""The Makefile: pg_regress through `make installcheck`, against a throwaway server, what is installed and removed, and flags."""

import os
import re
from pathlib import Path

import pytest

from harness.cluster import Install
from harness.processes import CommandFailed, run

REPOSITORY = Path(__file__).parents[2]


def test_installcheck(new_cluster, tmp_path):
    server = new_cluster().start()
    environment = {**os.environ, "PGHOST": str(server.root), "PGPORT": "5432", "PGUSER": "postgres"}
    try:
        output = run("make", "-C", REPOSITORY, "installcheck", f"PG_CONFIG={server.install.pg_config}",
                     f"EXTRA_REGRESS_OPTS=--outputdir={tmp_path}", env=environment)
    except CommandFailed as error:
        diffs = tmp_path / "regression.diffs"
        raise AssertionError(f"{error}\n{diffs.read_text() if diffs.exists() else ''}") from None
    assert re.search(r"All [1-9]\d* tests passed", output), output


@pytest.mark.no_server
def test_the_flags_are_those_of_pgxs():
    """PGXS appends some variables to the flags of the C compiler, which make exports where a packager has set them."""
    pg_config = Install.find().pg_config
    pgxs = run(pg_config, "--pgxs").strip()

    def flags(*options: str | Path) -> str:
        return run("make", "--no-print-directory", *options, f"PG_CONFIG={pg_config}",
                   "--eval", "flags: ; @echo $(CFLAGS) / $(LDFLAGS)", "flags", env={**os.environ, "CFLAGS": "-O1"})

    assert flags("-C", REPOSITORY) == flags("-f", pgxs, f"PGXS={pgxs}")


@pytest.mark.no_server
@pytest.mark.any_major
def test_uninstall_leaves_nothing_of_any_version(tmp_path):
    """`make install` over an older version, and `make uninstall`, with what `make` would have compiled."""
    pg_config, built, installed = Install.find().pg_config, tmp_path / "built", tmp_path / "installed"
    extensions = installed / run(pg_config, "--sharedir").strip().lstrip("/") / "extension"
    for path in (built / "pg_hugepages.so", built / "hugepage-sidecar", extensions / "pg_hugepages--0.0.9.sql", extensions / "other.control"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def make(target: str) -> set[str]:
        run("make", "-C", REPOSITORY, target, f"PG_CONFIG={pg_config}", f"BUILD_DIR={built}", f"DESTDIR={installed}")
        return {path.name for path in installed.rglob("*") if not path.is_dir()}

    assert make("install") >= {"other.control", "pg_hugepages.so", "pg_hugepages.control", "hugepage-sidecar", "hugepage-sidecar.1"}
    assert [path.name for path in extensions.glob("*0.0.9*")] == []
    assert (installed / "usr/local/bin/hugepage-sidecar").exists()
    assert make("uninstall") == {"other.control"}
