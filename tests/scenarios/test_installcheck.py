"""The SQL surface: pg_regress through `make installcheck`, against a throwaway server."""

import os
import re
from pathlib import Path

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
