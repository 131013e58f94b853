"""Walks of ./dev foretell that failed once, shrunk to the fewest steps; each ends with a restart and a crash of all."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from foretell.walk import finish
from foretell.world import World
from harness.reserved_host import ReservedHost

pytestmark = pytest.mark.any_major


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ReservedHost() as reserved:
        yield World(reserved, tmp_path_factory.mktemp("state"))


@pytest.fixture
def world(root: None, host: World) -> Iterator[World]:
    host.reset()
    yield host
    host.release_held()


def test_no_step_at_all(world: World) -> None:
    """The walk itself foretells and lands."""
    before = world.events
    finish(world)
    assert world.events == before + 4 and {prediction.landed for prediction in world.predictions[-4:]} == {"hugetlb"}


def test_files_that_turn_huge_pages_off_and_are_refused(world: World) -> None:
    """Nothing is needed of the pool, and the server does not start."""
    world.configure("server", huge_pages="off")
    world.include("server", "more.conf", "include 'nonesuch.conf'\n")
    finish(world)
