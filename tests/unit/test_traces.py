"""The check that a run of tests leaves nothing on the host."""

import subprocess
import sys
from pathlib import Path

from machine import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from harness import traces  # noqa: E402

RUN = """
import sys
from pathlib import Path
from harness import traces
place, at_exit = map(Path, sys.argv[1:])
traces.TREES, traces.NAMES = (place,), (f"{place.parent}/*",)
(place / "changed").write_text("a")
(place / "gone").touch()
before = traces.traces(settings=False)
assert traces.differences(before, traces.traces(settings=False)) == []
(place / "history").write_text("101")
(place / "changed").write_text("b" * 100)
(place / "gone").unlink()
(place.parent / "beside").mkdir()
at_exit.mkdir()
traces.remove_at_exit(at_exit)
print(*traces.differences(before, traces.traces(settings=False)), sep="\\n")
"""


def test_what_was_left_is_named(tmp_path: Path) -> None:
    place, at_exit = tmp_path / "state", tmp_path / "template"
    place.mkdir()
    done = subprocess.run([sys.executable, "-c", RUN, str(place), str(at_exit)], cwd=REPOSITORY / "tests", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left, beside, gone, changed = done.stdout.splitlines()
    assert (left, beside) == (f"left: {tmp_path}/beside", f"left: {place}/history")
    assert gone == f"gone: {place}/gone" and changed.startswith(f"changed: {place}/changed: ")
    assert not at_exit.exists()


def test_what_a_package_brings_is_not_the_tests():
    owned = "/etc/debian_version"
    assert traces.differences({}, {owned: "is there", "/etc/of-a-test": "is there"}) == ["left: /etc/of-a-test"]
    assert traces.differences({owned: "one"}, {owned: "another"}) == [f"changed: {owned}: one -> another"]
