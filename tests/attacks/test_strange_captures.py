"""A capture that a stranger made, or something else in its place: a command on it ends, soon and without a fault."""

import copy
import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar
from harness.host_tree import busy_host
from harness.units import MB

pytestmark = [pytest.mark.any_major, pytest.mark.no_server]

COMMANDS = (["status"], ["status", "--format", "json"], ["check"], ["metrics"], ["report", "--html", "-"])
LARGEST = 2 ** 64 - 1


@pytest.fixture
def capture(tmp_path) -> dict[str, Any]:
    return sidecar.run("--root", busy_host(tmp_path / "host").directory, "capture").json()


def each_number(found: Any):
    """The places of all numbers in it."""
    for key, value in found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ():
        if isinstance(value, int) and not isinstance(value, bool):
            yield found, key
        yield from each_number(value)


def test_no_number_is_too_large(capture, tmp_path):
    file = tmp_path / "capture.json"
    for place, key in each_number(capture["snapshot"]):
        kept, place[key] = place[key], LARGEST
        file.write_text(json.dumps(capture))
        place[key] = kept
        for command in COMMANDS:
            answer = sidecar.run(*command, "--snapshot", file)
            assert answer.status in (0, 1, 2, 3) and "panicked" not in answer.stderr, (key, command, answer.stderr)


def seconds(command: list[str | Path]) -> float:
    """The processor time that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_many_servers_cost_as_much_each_as_few(capture, tmp_path):
    """None of them fits, so that each is compared with all others: a user may have thousands, and no deadline ends what is decided."""
    one = next(one for one in capture["snapshot"]["servers"] if one["memory"]["shared"][0]["page_size"] == 4096)

    def with_servers(count: int) -> float:
        servers = [copy.deepcopy(one) for _ in range(count)]
        for number, server in enumerate(servers):
            server["id"].update(name=f"/srv/{number}", pid=1000 + number)
            mapping = server["memory"]["shared"][0]
            mapping["end"] = mapping["start"] + (40_000 + 2 * number) * MB
        capture["snapshot"]["servers"] = servers
        file = tmp_path / f"{count}.json"
        file.write_text(json.dumps(capture))
        return min(seconds(sidecar.command("check", "--snapshot", file)) for _ in range(3))
    few, count = with_servers(100), 12
    assert with_servers(count * 100) < few * count * 4


@pytest.mark.parametrize("kind,why", [("device", "not a regular file"), ("sparse", "longer than 16 MB")])
def test_what_has_no_end(tmp_path, kind, why):
    place = tmp_path / "capture.json"
    if kind == "device":
        place.symlink_to("/dev/zero")
    else:
        place.touch()
        os.truncate(place, 1 << 40)
    answer, used = sidecar.run_measured("status", "--snapshot", place)
    assert answer.status == sidecar.UNKNOWN and "capture" in answer.stderr
    assert why in answer.stderr, answer
    assert used.peak_memory < 64 * MB, used
