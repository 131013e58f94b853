"""The systemd unit of the sidecar: well-formed, and the two capabilities that it keeps are enough, and needed."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.processes import run
from harness.units import MB

pytestmark = pytest.mark.any_major

UNIT = Path(__file__).parents[2] / "packaging/systemd/hugepage-sidecar.service"


@pytest.fixture
def capabilities(root) -> list[str]:
    """What the unit leaves root, as setpriv(1) calls it."""
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(UNIT)
    return [name.removeprefix("CAP_").lower() for name in unit["Service"]["CapabilityBoundingSet"].split()]


def status(kept: list[str]) -> dict[str, dict]:
    """The instances, as root sees them who has these capabilities alone."""
    bounds = "-all" + "".join(f",+{name}" for name in kept)
    said = subprocess.run(["setpriv", f"--bounding-set={bounds}", *sidecar.command("status", "--format", "json")],
                          capture_output=True, text=True, timeout=60)
    assert said.stdout, said.stderr
    return {instance["name"]: instance for instance in sidecar.Answer(said.returncode, said.stdout, "").json()["instances"]}


def test_systemd_understands_it(root, tmp_path):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/bin/hugepage-sidecar", str(sidecar.binary())))
    verify = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verify.returncode, verify.stderr) == (0, "")
    security = run(shutil.which("systemd-analyze"), "security", "--offline=true", "--no-pager", "--threshold=20", str(unit))
    assert "Overall exposure level" in security


def test_its_capabilities_are_enough_and_needed(new_cluster, pool, capabilities):
    server: Cluster = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    server.start()
    name = str(server.data)
    everything = sidecar.run("status", "--format", "json").json()["instances"]
    [own] = [instance for instance in everything if instance["name"] == name]
    assert own["landed"] == "all" and not own["notes"]
    assert status(capabilities)[name] == own
    for needless in capabilities:
        less = status([name for name in capabilities if name != needless])
        assert less.get(name) != own, f"{needless} is not needed"
