"""Fixtures for the tests of the Oracle files: the SQL parsers, and the package in PostgreSQL."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from harness.cluster import Cluster, Install
from harness.lock import host_lock
from harness.oracle_files import REPOSITORY, public_directory
from harness.oracle_plsql import PlsqlPackage

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pg_hugepages"
# By default both write into the source tree: failed examples, and character tables.
hypothesis.configuration.set_hypothesis_home_dir(CACHE / "hypothesis")
hypothesis.settings.register_profile("no-database", database=None)
hypothesis.settings.load_profile("no-database")


@pytest.fixture(scope="session")
def validators() -> Path:
    """The directory of the parsers for Oracle's SQL."""
    directory = CACHE / "oracle-validators"
    subprocess.run([REPOSITORY / "scripts/oracle-validators", directory], check=True)
    return directory


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory for the files, as a DBA creates it."""
    made = public_directory()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def twin(request: pytest.FixtureRequest) -> Iterator[PlsqlPackage]:
    """The package on a server with orafce, with an empty directory of its own."""
    found = [install for install in Install.all() if install.has_extension("orafce")]
    assert found, "no PostgreSQL with orafce: apt-get install postgresql-15-orafce"
    made = public_directory()
    shared = bool(request.node.get_closest_marker("own_servers"))
    with host_lock(shared), Cluster(max(found, key=lambda install: install.major), huge_pages="off") as server:
        twin = PlsqlPackage(server.start(), made)
        yield twin
        twin.connection.close()
    shutil.rmtree(made)
