"""What ./dev finds, installs and says, for each state that a machine can be in. Nothing is compiled, nothing real installed."""

from collections.abc import Callable
from pathlib import Path

import pytest
from machine import CLANG, Machine

BOTH = ["postgresql-15", "postgresql-server-dev-15"]
PATHS_OWN = "../bin/pg_config"
"""Debian's, which leads to the newest major."""
PGDG = "/usr/share/postgresql-common/pgdg/apt.postgresql.org.sh"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def of_debian(major: int) -> str:
    return f"usr/lib/postgresql/{major}/bin/pg_config"


def complete(machine: Machine, major: int = 15) -> None:
    machine.has(f"postgresql-{major}", f"postgresql-server-dev-{major}")


def nothing(machine: Machine) -> None:
    pass


def server(machine: Machine) -> None:
    machine.has("postgresql-15")


def server_and_libpq_dev(machine: Machine) -> None:
    machine.has("postgresql-15")
    machine.has_libpq_dev(15)


def server_and_newer_libpq_dev(machine: Machine) -> None:
    machine.has("postgresql-15")
    machine.has_libpq_dev(18)


def server_and_other_headers(machine: Machine) -> None:
    machine.has("postgresql-15", "postgresql-server-dev-17")
    machine.has_libpq_dev(17)


def complete_and_newer_client(machine: Machine) -> None:
    complete(machine)
    machine.has("postgresql-client-17")
    machine.has_libpq_dev(17)


def complete_and_newer_server(machine: Machine) -> None:
    complete(machine)
    machine.has("postgresql-17")


def two_complete(machine: Machine) -> None:
    complete(machine)
    complete(machine, 17)


def headers(machine: Machine) -> None:
    machine.has("postgresql-server-dev-15")


def headers_whose_server_can_be_had(machine: Machine) -> None:
    machine.has("postgresql-server-dev-17")
    machine.apt_offers("postgresql-17")


def headers_whose_server_can_not_be_had(machine: Machine) -> None:
    machine.has("postgresql-server-dev-17")


def two_servers_of_which_apt_has_headers_for_one(machine: Machine) -> None:
    machine.has("postgresql-15", "postgresql-17")


def server_too_old(machine: Machine) -> None:
    machine.has("postgresql-14", "postgresql-server-dev-14")
    machine.has_libpq_dev(14)


def pgxs_removed(machine: Machine) -> None:
    machine.has("postgresql-15")
    machine.lacks_file("usr/lib/postgresql/15/lib/pgxs/src/makefiles/pgxs.mk")


def asked_for_17(machine: Machine) -> None:
    complete(machine)
    machine.apt_offers("postgresql-17", "postgresql-server-dev-17")
    machine.variables["PG_CONFIG"] = str(machine.system / of_debian(17))


def asked_for_the_path_s(machine: Machine) -> None:
    server_and_libpq_dev(machine)
    machine.variables["PG_CONFIG"] = str(machine.programs / "pg_config")


def in_german(machine: Machine) -> None:
    server(machine)
    machine.variables["LANG"] = machine.variables["LANGUAGE"] = "de_DE.UTF-8"


INSTALLED = [
    (complete, [], of_debian(15)),
    (complete_and_newer_client, [], of_debian(15)),
    (complete_and_newer_server, [], of_debian(15)),
    (two_complete, [], of_debian(17)),
    (nothing, BOTH, of_debian(15)),
    (server, BOTH[1:], of_debian(15)),
    (server_and_libpq_dev, BOTH[1:], PATHS_OWN),
    (server_and_newer_libpq_dev, BOTH[1:], PATHS_OWN),
    (server_and_other_headers, BOTH[1:], of_debian(15)),
    (headers, BOTH[:1], of_debian(15)),
    (headers_whose_server_can_be_had, ["postgresql-17"], of_debian(17)),
    (headers_whose_server_can_not_be_had, BOTH, of_debian(15)),
    (two_servers_of_which_apt_has_headers_for_one, BOTH[1:], of_debian(15)),
    (server_too_old, BOTH, PATHS_OWN),
    (pgxs_removed, BOTH[1:], of_debian(15)),
    (asked_for_17, ["postgresql-17", "postgresql-server-dev-17"], of_debian(17)),
    (asked_for_the_path_s, BOTH[1:], PATHS_OWN),
    (in_german, BOTH[1:], of_debian(15)),
]


@pytest.mark.parametrize("sudo", [False, True], ids=["root", "sudo"])
@pytest.mark.parametrize(("state", "installed", "compiled_for"), INSTALLED, ids=lambda value: getattr(value, "__name__", ""))
def test_with_root_what_is_missing_is_installed_and_nothing_else(machine, state, installed, compiled_for, sudo):
    state(machine)
    if sudo:
        machine.user(sudo=True)
    outcome = machine.dev("build")
    assert outcome.status == 0, outcome.output
    assert outcome.installed == installed
    assert outcome.compiled_for == compiled_for


@pytest.mark.parametrize(("state", "installed", "compiled_for"), INSTALLED, ids=lambda value: getattr(value, "__name__", ""))
def test_without_root_two_lines_say_what_to_type(machine, state, installed, compiled_for):
    state(machine)
    machine.user(sudo=False)
    outcome = machine.dev("build")
    assert outcome.apt_get == []
    if not installed:
        assert (outcome.status, outcome.compiled_for) == (0, compiled_for), outcome.output
        return
    assert (outcome.status, outcome.compiled_for) == (1, None), outcome.output
    lines = outcome.output.splitlines()
    assert len(lines) == 2 and lines[0].endswith("As root:"), outcome.output
    assert lines[1] == f"    apt-get install --no-install-recommends {' '.join(installed)}"


def no_headers_in_apt(machine: Machine) -> None:
    machine.has("postgresql-15")
    machine.apt_offers_no("postgresql-server-dev-15")


def distribution_too_old(machine: Machine) -> None:
    machine.distribution(13)


def no_postgresql_in_apt(machine: Machine) -> None:
    machine.file("distribution")


def built_without_headers(machine: Machine) -> None:
    machine.has_built(15, headers=None)


def built_with_other_headers(machine: Machine) -> None:
    machine.has_built(15, headers=16)


def built_too_old(machine: Machine) -> None:
    machine.has_built(14, headers=14)


def no_such_pg_config(machine: Machine) -> None:
    machine.variables["PG_CONFIG"] = "/nowhere/pg_config"


def server_that_does_not_run(machine: Machine) -> None:
    machine.has_built(15, headers=15)
    machine.file("opt/lib/postgresql/15/bin/postgres", "#!/bin/sh\necho 'libicu.so.72: not found' >&2\nexit 127\n")


@pytest.mark.parametrize(("state", "messages"), [
    (no_headers_in_apt, ["apt does not offer postgresql-server-dev-15", PGDG]),
    (distribution_too_old, ["offers no PostgreSQL of 15, 16, 17, 18, 19", PGDG]),
    (no_postgresql_in_apt, ["offers no PostgreSQL of 15, 16, 17, 18, 19", PGDG]),
    (built_without_headers, ["leads to no PostgreSQL", "server/postgres.h is missing"]),
    (built_with_other_headers, ["leads to no PostgreSQL", "are of PostgreSQL 16, the server is of 15"]),
    (built_too_old, ["leads to no PostgreSQL", "is of PostgreSQL 14; supported are 15 16 17 18 19"]),
    (no_such_pg_config, ["leads to no PostgreSQL", "There is no program /nowhere/pg_config"]),
    (server_that_does_not_run, ["leads to no PostgreSQL", "postgres is of PostgreSQL ?"]),
], ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("root", [True, False], ids=["root", "user"])
def test_what_no_package_mends_is_named(machine, state, messages, root):
    state(machine)
    if not root:
        machine.user(sudo=False)
    outcome = machine.dev("build")
    assert (outcome.status, outcome.installed, outcome.compiled_for) == (1, [], None), outcome.output
    for words in messages:
        assert words in outcome.output


def test_a_postgresql_built_from_source_is_taken(machine):
    machine.has_built(16, headers=16)
    outcome = machine.dev("build")
    assert (outcome.status, outcome.installed) == (0, []), outcome.output
    assert outcome.compiled_for == "opt/lib/postgresql/16/bin/pg_config"


def without(*names: str) -> Callable[[Machine], None]:
    def state(machine: Machine) -> None:
        for name in names:
            machine.lacks_file(name)
    return state


COMPILER = [
    (without("usr/lib/llvm-14/lib/libclang-14.so.1"), "libclang.so", "libclang-dev"),
    (without("usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h"), "stddef.h", "libclang-common-14-dev"),
    (without("usr/include/stdio.h"), "stdio.h", "libc6-dev"),
    (without("usr/include/unicode/ucol.h"), "unicode/ucol.h", "libicu-dev"),
    (lambda machine: machine.program("clang", None), "the program clang", "clang"),
    (lambda machine: machine.program("cc", None), "the program cc", "gcc"),
    (lambda machine: machine.program("make", None), "the program make", "make"),
]
NAMES = [package for _, _, package in COMPILER]


@pytest.mark.parametrize(("state", "piece", "package"), COMPILER, ids=NAMES)
@pytest.mark.parametrize("debian", [True, False], ids=["debian", "other"])
def test_a_piece_of_the_compiler_is_named_before_compiling(machine, state, piece, package, debian):
    """The package is there by dpkg's word, or there is no dpkg to ask."""
    complete(machine)
    state(machine)
    if not debian:
        machine.no_debian()
        machine.variables["PG_CONFIG"] = str(machine.system / of_debian(15))
    outcome = machine.dev("build")
    assert (outcome.status, outcome.compiled_for) == (1, None), outcome.output
    assert piece in outcome.output and outcome.output.splitlines()[-1].startswith("    apt-get install ")
    assert outcome.output.splitlines()[-1].endswith(f" --no-install-recommends {package}")


def test_icu_is_asked_for_only_where_the_server_has_it(machine):
    complete(machine)
    machine.lacks_file("usr/include/unicode/ucol.h")
    directory = "usr/include/postgresql/15/server"
    machine.file(f"{directory}/pg_config.h", '#define PG_MAJORVERSION "15"\n')
    machine.file(f"{directory}/utils/pg_locale.h")
    assert machine.dev("build").status == 0


def test_another_header_that_the_server_needs_is_named(machine):
    complete(machine)
    machine.file("usr/include/postgresql/15/server/postmaster/postmaster.h", "#include <gssapi.h>\n")
    outcome = machine.dev("build")
    assert (outcome.status, outcome.compiled_for) == (1, None)
    assert "'gssapi.h' file not found" in outcome.output and "Installing" not in outcome.output


def test_a_compiler_that_dies_without_a_word_is_named(machine):
    """As the kernel ends it where there is no memory."""
    complete(machine)
    machine.program("clang", CLANG.replace("while [", 'case "$*" in *postgres.h*) kill -KILL $$ ;; esac\nwhile [', 1))
    outcome = machine.dev("build")
    assert (outcome.status, outcome.compiled_for) == (1, None)
    assert "clang cannot read the server's headers: it ended with status 137" in outcome.output


@pytest.mark.parametrize("package", ["gcc", "make", "clang", "libclang-dev", "libicu-dev"])
def test_a_package_that_compiling_needs_is_installed_alone(machine, package):
    complete(machine)
    machine.lacks(package)
    assert machine.dev("build").installed == [package]


def test_without_root_a_missing_package_is_named_and_what_is_there_is_tried(machine):
    complete(machine)
    machine.lacks("libicu-dev")
    machine.user(sudo=False)
    outcome = machine.dev("build")
    assert (outcome.status, outcome.apt_get) == (0, [])
    assert "    apt-get install --no-install-recommends libicu-dev\n" in outcome.output


def ready_for_scenarios(machine: Machine) -> None:
    complete(machine)
    machine.lacks("chromium", "chromium-driver")
    machine.file("usr/share/postgresql/15/extension/orafce.control")


def test_a_browser_that_apt_has_is_installed(machine):
    ready_for_scenarios(machine)
    outcome = machine.dev("setup")
    assert (outcome.status, outcome.installed) == (0, ["chromium", "chromium-driver"]), outcome.output


def test_a_browser_that_apt_does_not_have_is_left_out_with_a_word(machine):
    ready_for_scenarios(machine)
    machine.apt_offers_no("chromium", "chromium-driver")
    outcome = machine.dev("setup")
    assert (outcome.status, outcome.installed) == (0, []), outcome.output
    assert "the report is not looked at in a browser" in outcome.output


@pytest.mark.parametrize("browser", ["chromium", "google-chrome"])
def test_a_browser_that_is_there_is_enough(machine, browser):
    ready_for_scenarios(machine)
    machine.program(browser, "#!/bin/sh\n")
    machine.program("chromedriver", "#!/bin/sh\n")
    outcome = machine.dev("setup")
    assert (outcome.status, outcome.apt_get) == (0, []), outcome.output


@pytest.mark.parametrize(("offered", "installed"), [(["15", "17"], "15"), (["17"], "17"), ([], None)])
def test_orafce_is_that_of_the_server_else_the_newest(machine, offered, installed):
    complete(machine)
    machine.apt_offers(*(f"postgresql-{major}-orafce" for major in offered))
    outcome = machine.dev("setup")
    assert outcome.status == 0, outcome.output
    assert outcome.installed == ([f"postgresql-{installed}-orafce"] if installed else [])
