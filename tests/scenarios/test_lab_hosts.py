"""Trees of the lab's machines: what the sidecar said there it says of their trees here, without the kernel."""

import json
from pathlib import Path

import pytest

from harness import sidecar
from harness.processes import run

pytestmark = [pytest.mark.any_major, pytest.mark.no_server]

HOSTS = Path(__file__).parents[1] / "hosts"
KERNELS = ("5.10", "6.1", "6.12", "newest")
ARCHIVES = sorted(str(archive.relative_to(HOSTS)) for kernel in KERNELS for archive in (HOSTS / kernel).glob("*.tar.xz"))


def test_machines_of_the_kernels():
    """A machine that a kernel lacks is missing by intent: the lab names it as not possible there."""
    by_kernel = {kernel: len(list((HOSTS / kernel).glob("*.tar.xz"))) for kernel in KERNELS}
    assert min(by_kernel.values()) >= 7, by_kernel


@pytest.mark.parametrize("archive", ARCHIVES)
def test_tree_answers_as_the_machine_did(archive, tmp_path):
    run("tar", "-xJf", HOSTS / archive, "-C", tmp_path)
    expected = json.loads((tmp_path / "expected.json").read_text())
    assert expected
    answer = sidecar.run("--root", tmp_path, "status", "--format", "json")
    [instance] = answer.json()["instances"]
    assert {name: instance[name] for name in expected} == expected
