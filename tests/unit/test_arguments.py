"""A wrong argument of ./dev is told before anything is installed or compiled for it."""

import pytest
from machine import Machine


@pytest.mark.parametrize("words, message", [
    (["demo", "now"], "'demo' takes no arguments, such as 'now'"),
    (["matrix", "15", "14"], "no major is called '14'; there are: 15 16 17 18 19"),
    (["matrix", "17", "-k"], "no major is called '-k'; there are: 15 16 17 18 19"),
    (["package", "sidecars"], "'package' takes sidecar, or majors of 15 16 17 18 19, not 'sidecars'"),
    (["package", "sidecar", "ppc64"], "'package' takes sidecar, or majors of 15 16 17 18 19, not 'sidecar'"),
    (["package", "16"], "Debian has no PostgreSQL 16, and apt here reads no archive of Ubuntu"),
    (["matrix", "17", "16"], "Debian has no PostgreSQL 16, and apt here reads no archive of Ubuntu"),
    (["supply-chain", "now"], "'supply-chain' takes --advisories, not 'now'"),
    (["soak"], "'soak' takes a number of hours first, not ''"),
    (["soak", "--seed", "1"], "'soak' takes a number of hours first, not '--seed'"),
])
def test_a_wrong_argument_costs_nothing(tmp_path, words, message):
    machine = Machine(tmp_path)
    machine.variables |= {"DEBFULLNAME": "a test", "DEBEMAIL": "test@example.invalid"}
    outcome = machine.dev(*words)
    assert outcome.status == 1 and message in outcome.output
    assert not outcome.apt_get and not outcome.compiled_for


@pytest.mark.parametrize("words", [["package"], ["package", "17"], ["package", "sidecar"]])
def test_packages_are_somebodys(tmp_path, words):
    machine = Machine(tmp_path)
    machine.variables["DEBFULLNAME"] = "a test"
    outcome = machine.dev(*words)
    assert outcome.status == 1 and "Set DEBFULLNAME and DEBEMAIL" in outcome.output
    assert not outcome.apt_get and not outcome.compiled_for


@pytest.mark.parametrize("command", ["demo", "matrix", "package", "soak", "lint"])
def test_help_costs_nothing(tmp_path, command):
    outcome = Machine(tmp_path).dev(command, "--help")
    assert outcome.status == 0 and "The one script of pg_hugepages" in outcome.output
    assert not outcome.apt_get and not outcome.compiled_for
