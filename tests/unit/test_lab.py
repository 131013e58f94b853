"""The arguments of ./dev lab, the scenarios that it finds, and the table that it writes. No guest is booted."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from machine import REPOSITORY, Machine

sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "tests/lab")]

import reporter
import run
import table
from harness.guest import Answer, GuestFailed
from machines import HERE, MACHINES, SHORT


@pytest.mark.parametrize(("arguments", "said"), [
    (["4.4"], "no kernel is called '4.4'; there are: 5.10 6.1 6.12 newest"),
    (["6.1", "bookworm"], "no kernel is called 'bookworm'"),
    (["-k"], "-k takes a part of a scenario's or a machine's name"),
    (["--steps", "many"], "--steps takes a number"),
])
def test_wrong_arguments_are_refused_before_anything_is_installed(tmp_path, arguments, said):
    outcome = Machine(tmp_path).dev("lab", *arguments)
    assert (outcome.status, outcome.apt_get) == (1, []), outcome.said
    assert said in outcome.said


def test_every_scenario_exists_and_belongs_to_a_machine():
    files = {path.name for path in HERE.glob("test_*.py")}
    assert files == {f"test_{machine.name.replace('-', '_')}.py" for machine in MACHINES} & files
    nodes = [node for machine in MACHINES for node in machine.scenarios().values()]
    assert len(nodes) == len(set(nodes)) >= 25
    for node in nodes:
        file, function = node.split("::")
        assert f"\ndef {function}(" in (REPOSITORY / "tests" / file).read_text(), node


def test_names_fit_the_table():
    assert [name for machine in MACHINES for name in machine.scenarios() if len(name) > 52] == []


def test_short_is_ten_scenarios():
    wanted = run.wanted_scenarios(None, short=True)
    assert sum(len(scenarios) for machines in wanted.values() for _machine, scenarios in machines) == 10
    assert {machine.name for machines in wanted.values() for machine, _scenarios in machines} == set(SHORT)


def test_part_of_a_name_selects():
    [(_boot, [(machine, scenarios)])] = run.wanted_scenarios("preferred_node", short=False).items()
    assert (machine.name, list(scenarios)) == ("mempolicy", ["preferred node is no limit"])


def lab_with(tmp_path: Path, kernel: str, **files: str) -> Path:
    directory = tmp_path / "kernels" / kernel
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / name).write_text(text)
    return tmp_path


def test_kernel_that_can_not_be_had_fails_the_run_and_is_named(tmp_path, monkeypatch, capsys):
    lab = lab_with(tmp_path, "5.10", missing="Debian bullseye could not be read\n")
    monkeypatch.setattr("sys.argv", ["run.py", "--lab", str(lab), "--kernels", "5.10", "--short"])
    assert run.main() == 1
    assert "0 passed, 0 failed, 0 not possible on that kernel, kernels not had: 5.10" in capsys.readouterr().out
    assert not (lab / "results.json").exists(), "only --docs keeps what was seen"


def test_guest_that_does_not_boot_fails_its_scenarios(tmp_path, monkeypatch):
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    (lab / "root15.img").touch()
    monkeypatch.setattr("harness.guest.QEMU", "false")
    column = run.run_kernel("6.1", run.wanted_scenarios("preferred", short=False), lab, lambda _column: None)
    assert column.cells == {"mempolicy: preferred node is no limit": ["failed", "the guest has ended"]}


def test_guest_that_ends_is_booted_again_for_what_is_left(tmp_path, monkeypatch):
    """The kernel of the first one panics in the second scenario."""
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    (lab / "root15.img").touch()
    ran = []

    class Panicking:
        def __init__(self, *_arguments: object, **_options: object) -> None:
            ran.append([])

        def __enter__(self) -> "Panicking":
            return self

        def __exit__(self, *_exception: object) -> None:
            pass

        def run(self, command: str, seconds: float, each_line: Callable[[str], None] | None = None) -> Answer:
            for node in command.split("/mnt/tests/")[3:] if each_line else []:
                if ran == [ran[0]] and ran[0]:
                    raise GuestFailed("the guest has ended; the end of its output and of its console:")
                ran[-1].append(node.strip())
                each_line(reporter.MARK + json.dumps({"node": node.strip(), "outcome": "passed", "reason": "", "seconds": 1}))
            return Answer(0, "6.1.0")

    monkeypatch.setattr("booted.Guest", Panicking)
    column = run.run_kernel("6.1", run.wanted_scenarios("mempolicy", short=False), lab, lambda _column: None)
    assert {outcome for outcome, _reason in column.cells.values()} == {"passed"} and len(column.cells) == 4
    assert [len(nodes) for nodes in ran] == [1, 3]


def test_table_keeps_what_other_runs_have_shown(tmp_path):
    document = tmp_path / "tested-on.md"
    document.write_text(f"# Title\n\n{table.BEGIN}{table.END}\n## Next\n")
    cell = "mempolicy: preferred node is no limit"
    for column in (table.Column("6.12", "2026-01-01", "6.12.9-cloud-amd64", cells={cell: ["passed", ""]}),
                   table.Column("6.1", "2026-01-02", "6.1.0-50-cloud-amd64", cells={cell: ["skipped", "it lacks that"]}),
                   table.Column("5.10", "2026-01-03", missing="no such suite")):
        table.write_table(column, tmp_path / "results.json", document)
    other = {"cpuset: preflight knows the nodes": ["failed", ""]}
    table.write_table(table.Column("6.12", "2026-01-04", "6.12.9-cloud-amd64", cells=other), tmp_path / "results.json", document)
    written = document.read_text()
    assert "| preflight knows the nodes |  |  | FAILS |" in written
    assert written.startswith("# Title\n") and written.endswith("\n## Next\n")
    assert "| scenario | 5.10 | 6.1 | 6.12 |" in written
    assert "| preferred node is no limit |  | - (1) | ok |" in written
    assert "1. it lacks that" in written and "could not be had: no such suite" in written
