"""The Makefile: pg_regress through `make installcheck`, against a throwaway server, and what a packager's flags become."""

import os
import re
from pathlib import Path

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


def test_the_flags_are_those_of_pgxs():
    """PGXS appends some variables to the flags of the C compiler, which make exports where a packager has set them."""
    pg_config = Install.find().pg_config
    pgxs = run(pg_config, "--pgxs").strip()

    def flags(*options: str | Path) -> str:
        return run("make", "--no-print-directory", *options, f"PG_CONFIG={pg_config}",
                   "--eval", "flags: ; @echo $(CFLAGS) / $(LDFLAGS)", "flags", env={**os.environ, "CFLAGS": "-O1"})

    assert flags("-C", REPOSITORY) == flags("-f", pgxs, f"PGXS={pgxs}")
