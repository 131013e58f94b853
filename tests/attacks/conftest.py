"""What root sees of the host stays as it is during an attack."""

import pytest

from harness.reserved_host import ReservedHost


@pytest.fixture(autouse=True)
def host_reserved(reserved_host: ReservedHost) -> ReservedHost:
    return reserved_host
