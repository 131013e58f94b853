"""The arguments of ./dev lab, the scenarios that it finds, and the table that it writes. No guest is booted."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from machine import REPOSITORY, Machine

sys.path[:0] = [str(REPOSITORY / "tests"), str(REPOSITORY / "tests/lab")]

import reporter
import run
import table
import walks
from booted import booted, kernel_of
from harness.guest import AMD64, ARM64, Answer, Architecture, GuestFailed, Kernel
from harness.markers import with_row
from harness.poll import until
from harness.processes import alive
from harness.units import GB
from machines import HERE, MACHINES, ONE_NODE, SHORT, Boot


@pytest.mark.parametrize(("arguments", "message"), [
    (["4.4"], "no kernel is called '4.4'; there are: 5.10 6.1 6.12 newest 6.1-arm64 6.12-arm64-16k"),
    (["6.1", "bookworm"], "no kernel is called 'bookworm'"),
    (["-k"], "-k takes a part of a scenario's or a machine's name"),
    (["--steps", "many"], "--steps takes a number"),
])
def test_wrong_arguments_are_refused_before_anything_is_installed(tmp_path, arguments, message):
    outcome = Machine(tmp_path).dev("lab", *arguments)
    assert (outcome.status, outcome.apt_get) == (1, []), outcome.output
    assert message in outcome.output


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


def test_short_is_nine_scenarios():
    wanted = run.wanted_scenarios(None, short=True)
    assert sum(len(scenarios) for machines in wanted.values() for _machine, scenarios in machines) == 9
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


def with_disk(lab: Path, architecture: Architecture) -> None:
    (lab / architecture.name).mkdir()
    (lab / architecture.name / "root15.img").touch()


def test_kernel_that_can_not_be_had_fails_the_run_and_is_named(tmp_path, monkeypatch, capsys):
    lab = lab_with(tmp_path, "5.10", missing="Debian bullseye could not be read\n")
    monkeypatch.setattr("sys.argv", ["run.py", "--lab", str(lab), "--kernels", "5.10", "--short"])
    assert run.main() == 1
    assert "0 passed, 0 failed, 0 not possible on that kernel, kernels not had: 5.10" in capsys.readouterr().out


def test_guest_that_does_not_boot_fails_its_scenarios(tmp_path, monkeypatch):
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    with_disk(lab, AMD64)
    monkeypatch.setattr("booted.AMD64", replace(AMD64, qemu=("false",)))
    column = run.run_kernel("6.1", run.wanted_scenarios("preferred", short=False), lab, lambda _column: None)
    assert column.cells == {"mempolicy: preferred node is no limit": ["failed", "the guest has ended"]}


def test_guest_that_the_host_lacks_memory_for_is_left_out(tmp_path, monkeypatch, capsys):
    """Nothing is known of the kernel then: the table keeps what it has."""
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    monkeypatch.setattr("run.meminfo", lambda: {"MemAvailable": 14 * GB})
    column = run.run_kernel("6.1", run.wanted_scenarios("gigantic", short=False), lab, lambda _column: None)
    assert column.cells == {} and "large: left out: this host has less than 15 GB of memory available" in capsys.readouterr().out


def test_signal_ends_the_guest(tmp_path):
    """QEMU is a program that notes its pid and never answers."""
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    with_disk(lab, AMD64)
    qemu, pid = tmp_path / "qemu-system-x86_64", tmp_path / "pid"
    qemu.write_text(f"#!/bin/sh\necho $$ >{pid}.new\nmv {pid}.new {pid}\nexec sleep 1000\n")
    qemu.chmod(0o755)
    command = [sys.executable, HERE / "run.py", "--lab", lab, "--kernels", "6.1", "-k", "preferred"]
    with subprocess.Popen(command, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY / "tests")},
                          stdout=subprocess.DEVNULL) as process:
        until("the guest to start", pid.exists)
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM and not alive(int(pid.read_text()))


def test_guest_that_ends_is_booted_again_for_what_is_left(tmp_path, monkeypatch):
    """The kernel of the first one panics in the second scenario."""
    lab = lab_with(tmp_path, "6.1", release="6.1.0-0-cloud-amd64\n")
    with_disk(lab, AMD64)
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
    assert {outcome for outcome, _reason in column.cells.values()} == {"passed"} and len(column.cells) == 5
    assert [len(nodes) for nodes in ran] == [1, 4]


def test_guest_of_arm64_has_its_own_program_disks_and_default_page(tmp_path, monkeypatch):
    """QEMU is a program that notes its arguments and answers as the agent does."""
    qemu = tmp_path / "qemu"
    qemu.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{tmp_path}/arguments\nprintf '\\036ready\\n'\n")
    qemu.chmod(0o755)
    lab = lab_with(tmp_path, "6.12-arm64-16k", release="6.12.9-arm64-16k\n")
    with_disk(lab, AMD64)
    with_disk(lab, ARM64)
    monkeypatch.setattr("booted.ARM64", replace(ARM64, qemu=(str(qemu),)))
    with booted(lab, kernel_of(lab, "6.12-arm64-16k"), ONE_NODE):
        arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[arguments.index("-cpu") + 1] == "max" and "pci-serial,chardev=agent" in arguments
    assert [word for word in arguments if ".img" in word] == [
        f"file={lab}/arm64/{disk}.img,format=raw,if=virtio,snapshot=on" for disk in ("root15", "project")]
    words = arguments[arguments.index("-append") + 1].split()
    assert {"console=ttyAMA0", "lab.agent=ttyS0", "default_hugepagesz=2M", "lab.cgroups=accounting"} <= set(words)


@pytest.mark.parametrize(("boot", "amd64", "arm64"), [
    (Boot("plain", words="panic=5"), "panic=5", "default_hugepagesz=2M panic=5"),
    (Boot("own", own_default=True), "", ""),
    (Boot("large", words="default_hugepagesz=1G"), "default_hugepagesz=1G", "default_hugepagesz=1G"),
])
def test_default_page_is_2_mb_unless_a_machine_says_otherwise(boot, amd64, arm64):
    assert (boot.words_for(AMD64), boot.words_for(ARM64)) == (amd64, arm64)


def test_machine_that_an_architecture_has_not_is_named_with_the_reason(tmp_path, monkeypatch):
    """Nothing is booted for it."""
    monkeypatch.setattr("run.booted", lambda *_arguments: pytest.fail("a guest was booted"))
    lab = lab_with(tmp_path, "6.1-arm64", release="6.1.0-0-cloud-arm64\n")
    column = run.run_kernel("6.1-arm64", run.wanted_scenarios("no-hugetlb", short=False), lab, lambda _column: None)
    assert list(column.cells.values()) == [["skipped", "there is no arm64 CPU without huge pages"]] * 2


def test_table_names_the_architecture_after_the_numbers(tmp_path):
    document = tmp_path / "tested-on.md"
    document.write_text(f"{table.BEGIN}{table.END}")
    for name, release in (("6.12-arm64-16k", "6.12.9+deb13-arm64-16k"), ("6.1-arm64", "6.1.0-50-cloud-arm64"),
                          ("newest", "7.2.1-cloud-amd64"), ("6.1", "6.1.0-50-cloud-amd64")):
        table.write_table(table.Column(name, "2026-01-01", release), document)
    written = document.read_text()
    assert "| scenario | 6.1 | 7.2 | 6.1 arm64 | 6.12 arm64 16k |" in written
    assert "| 6.12 arm64 16k | 6.12.9+deb13-arm64-16k | 2026-01-01 | `./dev lab 6.12-arm64-16k` |" in written


def test_table_of_the_repository_is_read_as_it_was_written():
    text = (REPOSITORY / "tests/lab/record.md").read_text().partition(table.BEGIN)[2].partition(table.END)[0]
    columns = table.columns_of(text)
    assert len(columns) >= 4 and table.columns_of(table.table(columns)) == columns
    assert sum(len(column.cells) for column in columns) == len(re.findall(r"\| (ok|FAILS|- \(\d+\))(?= \|)", text))


def test_row_of_each_kernel_says_what_the_record_has():
    record, page = ((REPOSITORY / name).read_text() for name in ("tests/lab/record.md", "tests/tested-on.md"))
    columns = table.columns_of(record.partition(table.BEGIN)[2].partition(table.END)[0])
    assert columns and [column.name for column in columns if with_row(page, table.row(column)) != page] == []


def test_row_of_a_walk_has_the_numbers_that_it_printed():
    printed = "`./dev foretell --steps 9 --seed 4`, 2026-01-01, Linux 5.10.9, PostgreSQL 15.1:\n9 steps.\n\n" \
              "In all: 5 answers, 4 right, 1 unknown, 0 wrong.\n"
    written = walks.row("5.10", Kernel("5.10", "5.10.9", Path(), Path()), walks.WALKED[1], "./dev lab 5.10", printed)
    assert [*written[:2], *written[3:]] == ["walk, 5.10, two nodes", "Linux 5.10.9, PostgreSQL 15.1", "`./dev lab 5.10`", "5", "4", "1", "0"]


def test_table_keeps_what_other_runs_have_shown(tmp_path):
    document = tmp_path / "tested-on.md"
    document.write_text(f"# Title\n\n{table.BEGIN}{table.END}\n## Next\n")
    cell = "mempolicy: preferred node is no limit"
    for column in (table.Column("6.12", "2026-01-01", "6.12.9-cloud-amd64", cells={cell: ["passed", ""]}),
                   table.Column("6.1", "2026-01-02", "6.1.0-50-cloud-amd64", cells={cell: ["skipped", "it lacks that"]}),
                   table.Column("5.10", "2026-01-03", missing="no such suite")):
        table.write_table(column, document)
    other = {"cpuset: preflight knows the nodes": ["failed", ""]}
    table.write_table(table.Column("6.12", "2026-01-04", "6.12.9-cloud-amd64", cells=other), document)
    written = document.read_text()
    assert "| preflight knows the nodes |  |  | FAILS |" in written
    assert written.startswith("# Title\n") and written.endswith("\n## Next\n")
    assert "| scenario | 5.10 | 6.1 | 6.12 |" in written
    assert "| preferred node is no limit |  | - (1) | ok |" in written
    assert "1. it lacks that" in written and "could not be had: no such suite" in written
