"""What ./dev fresh reads out of README.md and out of what the demo and the tests print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
SUMMARY = "=================== {} in 512.31s (0:08:32) ===================\n"
CHROMIUM = "SKIPPED [4] scenarios/test_report.py:93: no Chromium and no Google Chrome with its driver is here\n"
VICTIM = "test killed::victim ... ignored, run by killed_at_any_moment as the process that is killed\n"


def ask(function: str, text: str, *arguments: str) -> str:
    """What a function of scripts/fresh-checks.sh says of a text."""
    return subprocess.run(["bash", "-euo", "pipefail", "-c", '. scripts/fresh-checks.sh; "$@"', "bash", function, *arguments],
                          cwd=SOURCES, input=text, capture_output=True, text=True, check=True).stdout.strip()


def test_commands_of_the_readme() -> None:
    commands = ask("readme_commands", (SOURCES / "README.md").read_text()).splitlines()
    assert [command.split()[-1] for command in commands] == ["demo", "test"]


def test_network_settings() -> None:
    kept = '[source.crates-io]\nreplace-with = "m"\n[http]\ncainfo = "x"\n'
    assert ask("network_settings", f'[build]\nrustc-wrapper = "w"\n{kept}[target.x]\nlinker = "l"\n') == kept.strip()


@pytest.mark.parametrize("rows,missed", [("tft", False), ("ftf", True), ("tf", True), ("t", True), ("", True)])
def test_demo(rows: str, missed: bool) -> None:
    shown = "".join(f"-[ DATENSATZ 1 ]-----\nverdict                      | ok\nshared_buffers_in_huge_pages | {row}\n" for row in rows)
    assert ("three rows were not shown" in ask("demo_misses", shown, "bare")) == missed


WHY = "Can't reserve huge pages: /proc/sys/vm/nr_hugepages: Read-only file system."


@pytest.mark.parametrize("rows,why,missed", [("f", WHY, False), ("t", WHY, False), ("tft", WHY, True), ("", WHY, True), ("f", "", True)])
def test_demo_in_a_container(rows: str, why: str, missed: bool) -> None:
    shown = why + "".join(f"\nshared_buffers_in_huge_pages | {row}\n" for row in rows)
    assert bool(ask("demo_misses", shown, "container")) == missed


@pytest.mark.parametrize("state,allowed", [("container", True), ("bare", False)])
def test_only_a_container_may_leave_out_what_changes_the_host(state: str, allowed: bool) -> None:
    reason = subprocess.run([sys.executable, "-c", "from harness.refusal import REASON; print(REASON)"], cwd=SOURCES / "tests",
                            capture_output=True, text=True, check=True).stdout
    output = f"SKIPPED [444] harness.refusal: {reason}{SUMMARY.format('280 passed, 444 skipped')}"
    assert (ask("test_misses", output, state) == "") == allowed


@pytest.mark.parametrize("state,output,reason", [
    ("bare", VICTIM + SUMMARY.format("510 passed"), ""),
    ("bare", VICTIM + CHROMIUM + SUMMARY.format("506 passed, 4 skipped"), "no Chromium"),
    ("ubuntu", VICTIM + CHROMIUM + SUMMARY.format("506 passed, 4 skipped"), ""),
    ("bare", "test slow ... ignored\n" + SUMMARY.format("510 passed"), "slow ... ignored"),
    ("bare", "SKIPPED [1] scenarios/test_monitoring.py:30: promtool is not installed\n" + SUMMARY.format("1 passed, 1 skipped"), "promtool"),
    ("bare", "Everything went well.\n", "no line says"),
    ("bare", f"{SUMMARY.format('9 passed')}\nSkipped:\n   4 x reports are not viewed: no Chromium\n\n9 passed, 0 failed, 4 skipped\n", "no Chromium"),
])
def test_skips(state: str, output: str, reason: str) -> None:
    answer = ask("test_misses", output, state)
    assert reason in answer and bool(answer) == bool(reason)


@pytest.mark.parametrize("summary,numbers", [
    (SUMMARY.format("510 passed"), "510 passed, 0 skipped"),
    (SUMMARY.format("506 passed, 4 skipped, 1 warning"), "506 passed, 4 skipped"),
    (SUMMARY.format("1 failed, 505 passed, 4 skipped"), "505 passed, 4 skipped"),
    (SUMMARY.format("506 passed, 4 skipped") + "\n890 passed, 0 failed, 4 skipped\n", "890 passed, 4 skipped"),
])
def test_numbers(summary: str, numbers: str) -> None:
    assert ask("test_numbers", summary) == numbers


def test_every_listed_skip_has_a_reason() -> None:
    for line in (SOURCES / "tests" / "skips.txt").read_text().splitlines():
        assert line.startswith("#") or len([part for part in line.split("|") if part.strip()]) == 3


def test_every_ignored_test_is_listed() -> None:
    """Of the crates, with the reason that cargo prints."""
    sources = "\n".join(file.read_text() for file in SOURCES.glob("crates/*/**/*.rs"))
    reasons = re.findall(r"#\[ignore(?: = \"(.*)\")?\]", sources)
    assert reasons
    for reason in reasons:
        assert ask("test_misses", f"test a::b ... ignored, {reason}\n{SUMMARY.format('9 passed')}", "bare") == ""
