"""The line at the end of ./dev test."""

import subprocess
from pathlib import Path

import pytest
from machine import REPOSITORY

CARGO = """
running 4 tests
test model::tests::sizes ... ok
test model::tests::counts ... ok
test pool::grows ... FAILED
test killed ... ignored, run by killed_at_any_moment as the process that is killed
test slow ... ignored, the long race was not run: RACE_SECONDS=60
"""

PYTEST = """<testsuites><testsuite name="pytest">
<testcase classname="scenarios.test_views" name="test_one" time="12.34"/>
<testcase classname="scenarios.test_views" name="test_two" time="0.4"><failure message="x">x</failure></testcase>
<testcase classname="scenarios.test_views" name="test_three"><error message="x">x</error></testcase>
<testcase classname="scenarios.test_report" name="test_a"><skipped type="pytest.skip" message="no browser: install one">x</skipped></testcase>
<testcase classname="scenarios.test_report" name="test_b"><skipped type="pytest.skip" message="no browser: install one">x</skipped></testcase>
<testcase classname="scenarios.test_report" name="test_c"><skipped type="pytest.xfail" message="known">x</skipped></testcase>
</testsuite></testsuites>"""


def tally(directory: Path, *options: str, **reports: tuple[str | None, int]) -> "subprocess.CompletedProcess[str]":
    """What the script says of reports: NAME_SUFFIX=(text, exit status)."""
    for name, (text, status) in reports.items():
        report = directory / name.replace("_", ".")
        if text is not None:
            report.write_text(text)
        (directory / f"{report.name}.status").write_text(f"{status}\n")
    return subprocess.run([REPOSITORY / "scripts/tally", *options, directory], text=True, capture_output=True)


def test_the_slowest_are_named(tmp_path):
    """From a second on."""
    lines = tally(tmp_path, host_xml=(PYTEST, 1)).stdout.splitlines()
    assert lines[1:4] == ["Slowest:", "  12.3 s scenarios.test_views::test_one", ""]


def test_both_are_added_up_and_skips_say_what_they_mean(tmp_path):
    outcome = tally(tmp_path, cargo_log=(CARGO, 101), scenarios_xml=(PYTEST, 1))
    lines = outcome.stdout.splitlines()
    assert (outcome.returncode, lines[-1]) == (1, "4 passed, 3 failed, 3 skipped")
    assert "   2 x no browser: install one" in lines
    assert "   1 x the long race was not run: RACE_SECONDS=60" in lines
    assert "    pool::grows" in lines and "    scenarios.test_views::test_two" in lines


@pytest.mark.parametrize(("reports", "status", "last"), [
    ({"cargo_log": ("test a ... ok\n", 0)}, 0, "1 passed, 0 failed, 0 skipped"),
    ({"cargo_log": ("error[E0425]: cannot find value\n", 101)}, 1, "0 passed, 1 failed, 0 skipped"),
    ({"cargo_log": ("test a ... ok\n", 0), "scenarios_xml": (None, 4)}, 1, "1 passed, 1 failed, 0 skipped"),
    ({"cargo_log": ("test a ... ok\n", 0), "unit_xml": ("<testsuites/>", 5)}, 0, "1 passed, 0 failed, 0 skipped"),
    ({"scenarios_xml": ("<testsuites/>", 5)}, 1, "0 passed, 0 failed, 0 skipped"),
    ({}, 1, "0 passed, 0 failed, 0 skipped"),
])
def test_the_exit_status(tmp_path, reports, status, last):
    outcome = tally(tmp_path, **reports)
    assert (outcome.returncode, outcome.stdout.splitlines()[-1]) == (status, last)


@pytest.mark.parametrize(("reports", "status", "printed"), [
    ({"host_xml": (PYTEST, 1)}, 0, "tests/scenarios/test_views.py::test_two\ntests/scenarios/test_views.py::test_three\n"),
    ({"host_xml": (PYTEST, 1), "beside_xml": (PYTEST, 1)}, 1, ""),
    ({"host_xml": (PYTEST, 1), "cargo_log": (CARGO, 101)}, 1, ""),
    ({"host_xml": (PYTEST, 1), "lanes": (None, 1)}, 1, ""),
    ({"cargo_log": ("test a ... ok\n", 0)}, 1, ""),
    ({}, 1, ""),
], ids=["few", "many", "a unit test", "the host is not as before", "none", "no run"])
def test_only_a_few_scenarios_are_tried_again(tmp_path, reports, status, printed):
    outcome = tally(tmp_path, "--again", **reports)
    assert (outcome.returncode, outcome.stdout) == (status, printed), outcome
