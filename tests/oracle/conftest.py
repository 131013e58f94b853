"""Fixtures of the tests of what Oracle reads: the parsers, a writer, and the package run by PostgreSQL."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from harness.cluster import Cluster, Install
from harness.oracle_files import REPOSITORY, public_directory
from harness.oracle_twin import Twin

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "pg_hugepages"
# By default both write into the source tree: examples that failed, and tables of characters.
hypothesis.configuration.set_hypothesis_home_dir(CACHE / "hypothesis")
hypothesis.settings.register_profile("no-database", database=None)
hypothesis.settings.load_profile("no-database")


@pytest.fixture(scope="session")
def validators() -> Path:
    """The directory of the parsers of Oracle's SQL."""
    directory = CACHE / "oracle-validators"
    subprocess.run([REPOSITORY / "scripts/oracle-validators", directory], check=True)
    return directory


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory for the files, as a DBA makes it."""
    made = public_directory()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def twin() -> Iterator[Twin]:
    """The package on a server with orafce, over a directory of its own that is empty at first."""
    found = [install for install in Install.all() if install.has_extension("orafce")]
    assert found, "no PostgreSQL with orafce: apt-get install postgresql-15-orafce"
    made = public_directory()
    with Cluster(max(found, key=lambda install: install.major), huge_pages="off") as server:
        twin = Twin(server.start(), made)
        yield twin
        twin.connection.close()
    shutil.rmtree(made)
