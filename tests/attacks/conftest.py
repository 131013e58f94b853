"""What root sees of the host stays as it is during an attack."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.attacker import USER
from harness.reserved_host import ReservedHost


@pytest.fixture(autouse=True)
def host_reserved(reserved_host: ReservedHost) -> ReservedHost:
    return reserved_host


@pytest.fixture
def home(root) -> Iterator[Path]:
    """A directory of the attacker's, which everybody may search."""
    place = Path(f"/tmp/pg_hugepages-attack-{os.getpid()}")
    place.mkdir()
    os.chown(place, USER, USER)
    yield place
    subprocess.run(["rm", "-rf", place], check=True)
