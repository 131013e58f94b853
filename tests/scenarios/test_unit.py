"""The systemd unit of the sidecar: well-formed, and its capabilities are enough, and needed. attacks/test_unit_sets.py runs it
with every output."""

import shutil
import subprocess

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.processes import run
from harness.systemd_unit import UNIT, capabilities, command
from harness.units import MB

pytestmark = pytest.mark.any_major


def status(kept: list[str]) -> dict[str, dict]:
    """The instances, as root sees them who has these capabilities alone."""
    bounds = "-all" + "".join(f",+{name.removeprefix('CAP_').lower()}" for name in kept)
    result = subprocess.run(["setpriv", f"--bounding-set={bounds}", *sidecar.command("status", "--format", "json")],
                            capture_output=True, text=True, timeout=60)
    assert result.stdout, result.stderr
    return {instance["name"]: instance for instance in sidecar.Answer(result.returncode, result.stdout, "").json()["instances"]}


@pytest.mark.no_server
@pytest.mark.parametrize("name", [UNIT.name, "hugepage-reserve.service"])
def test_systemd_understands_it(root, tmp_path, name):
    unit = tmp_path / name
    unit.write_text(UNIT.with_name(name).read_text().replace("/usr/bin/hugepage-sidecar", str(sidecar.binary())))
    verify = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verify.returncode, verify.stderr) == (0, "")
    security = run(shutil.which("systemd-analyze"), "security", "--offline=true", "--no-pager", "--threshold=25", str(unit))
    assert "Overall exposure level" in security


def test_its_capabilities_are_enough_and_needed(new_cluster, pool):
    server: Cluster = new_cluster()
    pool(2 * MB, server.pages_needed(2 * MB))
    server.start()
    name = str(server.data)
    everything = sidecar.run("status", "--format", "json").json()["instances"]
    [own] = [instance for instance in everything if instance["name"] == name]
    assert own["landed_in"] == "hugetlb" and not own["notes"]
    # The kernel tells a start in hundredths of a second after the boot, whose time it shows to the second.
    del own["started"]

    def seen(held: list[str]) -> dict | None:
        found = status(held).get(name)
        return found and {column: found[column] for column in own}
    assert seen(capabilities()) == own
    for needless in capabilities():
        less = seen([name for name in capabilities() if name != needless])
        # The others are for Oracle, for readers that are stuck, and for files that are written.
        assert (less == own) == (needless not in ("CAP_SETUID", "CAP_SETGID")), needless


@pytest.mark.no_server
def test_systemd_understands_it_with_its_drop_ins(root, tmp_path):
    unit = tmp_path / UNIT.name
    place = tmp_path / f"{UNIT.name}.d"
    place.mkdir()
    drop_ins = sorted(UNIT.parent.glob("*.conf"))
    for path, source in ((unit, UNIT), *((place / drop_in.name, drop_in) for drop_in in drop_ins)):
        path.write_text(source.read_text().replace("/usr/bin/hugepage-sidecar", str(sidecar.binary())))
    verify = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (verify.returncode, verify.stderr) == (0, "")


@pytest.mark.no_server
def test_drop_ins_add_up():
    with_both = command("oracle.conf", "textfile.conf")
    assert command() == ["/usr/bin/hugepage-sidecar", "watch"]
    assert with_both == [*command("oracle.conf"), *command("textfile.conf")[2:]] and len(with_both) == 6


def test_who_can_read_the_files_of_the_drop_ins(root, tmp_path):
    """node_exporter has an account of its own; Oracle has the group of its directory. The unit may write to both directories."""
    places = {"/var/lib/prometheus/node-exporter": tmp_path / "metrics", "/var/lib/hugepage-sidecar/oracle": tmp_path / "oracle"}
    assert list(places)[0] in (UNIT.parent / "textfile.conf").read_text().split("ReadWritePaths=")[1].split()
    words = command("oracle.conf", "textfile.conf")[1:]
    tmp_path.chmod(0o755)
    for named, place in places.items():
        place.mkdir(mode=0o755)
        words = [word.replace(named, str(place)) for word in words]
    sidecar.run(*words, "--once", "--state-dir", tmp_path / "state")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("*/h*")}
    assert (modes["hugepages.prom"], modes["hp_host.dat"]) == (0o644, 0o640)
