"""docs/oracle.md as a DBA follows it, as far as no Oracle is needed: its commands run, its options and files exist."""

import re
import shlex
import subprocess

import pytest
from harness.oracle_dictionary import Dictionary
from harness.oracle_files import REPOSITORY, script
from harness.oracle_loader import load
from harness.processes import run
from harness.sidecar import binary

TEXT = (REPOSITORY / "docs/oracle.md").read_text()
STATE = "/var/lib/hugepage-sidecar"
SPEC = (REPOSITORY / "packaging/rpm/hugepage-sidecar.spec").read_text()


def section(title):
    return re.split(r"^## ", TEXT.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def commands(text):
    """The lines of the indented blocks."""
    return [line.strip() for line in re.findall(r"^ {4,}(\S.*)$", text, re.MULTILINE)]


INSTALLATION, ROOT, ENVIRONMENTS = (commands(section(title)) for title in (
    "Installation", "The root of a multitenant database", "Environments"))


@pytest.mark.no_server
@pytest.mark.parametrize("line", [line for line in INSTALLATION + ROOT + ENVIRONMENTS
                                  if line.startswith("hugepage-sidecar ")])
def test_options_exist(line):
    words = shlex.split(line.split(">")[0])[1:]
    names = [word for word in words[:2] if re.fullmatch("[a-z][a-z-]*", word)]
    shown = run(binary(), *names, "--help")
    assert [option for option in words if option.startswith("--") and f" {option} " not in shown] == []


@pytest.mark.no_server
def test_options_in_sentences_exist():
    shown = "".join(run(binary(), *names, "--help") for names in (("watch",), ("oracle", "write"), ("oracle", "install-sql")))
    named = set(re.findall(r"`(--[a-z-]+)", section("Installation")))
    assert named and {option for option in named if f" {option}" not in shown} == set()


@pytest.mark.no_server
def test_packages_are_named_as_they_are_made():
    made = (REPOSITORY / "scripts/sidecar-packages.sh").read_text()
    rpms = [line.split()[-1] for line in INSTALLATION if line.startswith("rpm ")]
    dist = re.search(r"^Release:.*old_systemd:(\S+)\}$", SPEC, re.MULTILINE).group(1)
    assert rpms == ["hugepage-sidecar-VERSION-1.x86_64.rpm", f"hugepage-sidecar-VERSION-1{dist}.x86_64.rpm"]
    [tar] = [line.split()[2] for line in INSTALLATION if line.startswith("tar ")]
    assert tar.replace("VERSION", "$version").replace("x86_64", "$architecture") in made


@pytest.mark.no_server
def test_role_has_the_documented_variables():
    [line] = [line for line in INSTALLATION if line.startswith("ansible-playbook ")]
    words = shlex.split(line)
    playbook = REPOSITORY / words[words.index("HOSTS") + 1]
    assert playbook.is_file()
    defaults = (playbook.parent / "roles/hugepage_sidecar/defaults/main.yml").read_text()
    variables = [word.split("=")[0] for before, word in zip(words, words[1:]) if before == "-e"]
    assert variables and all(f"\n{variable}:" in defaults for variable in variables)


@pytest.mark.no_server
def test_files_of_the_packages_exist(directory):
    """What the steps take from a package is in the RPM and in the Debian package, both of which take what make lays out."""
    [line] = [line for line in INSTALLATION if line.startswith("install -D ")]
    source = line.split()[-2]
    subprocess.run(["make", "-C", REPOSITORY, "install-sidecar-share", f"DESTDIR={directory}"], check=True, capture_output=True)
    assert (directory / source.removeprefix("/")).exists() and source.rpartition("/")[0] in SPEC
    assert "install-sidecar-share" in (REPOSITORY / "packaging/debian/rules").read_text()
    drop_in = (REPOSITORY / "packaging/systemd" / source.rpartition("/")[2]).read_text()
    [watch] = [line for line in INSTALLATION if line.startswith("hugepage-sidecar watch")]
    options = watch.removeprefix("hugepage-sidecar watch ").removesuffix(" --interval 60s")
    assert f'Environment="ORACLE_OPTIONS={options}"\n' in drop_in


def test_host_steps(directory, root):
    """The steps as root, with another directory and an existing group; afterwards Oracle would read the files."""
    for line in INSTALLATION:
        if line.startswith(("install -d ", "hugepage-sidecar oracle write ")):
            line = line.replace(STATE, f"{directory}/state").replace("oinstall", "daemon").replace("hugepage-sidecar ", f"{binary()} ")
            subprocess.run(["sh", "-ec", line], check=True)
    loaded = load(script("install-sql"), directory / "state/oracle")
    assert len(loaded["hp_host"]) == 1
    assert f"{(directory / 'state').stat().st_mode & 0o777:o}" == "751"


@pytest.mark.parametrize("steps,container,reader", [
    (INSTALLATION, "PDB1", "HUGEPAGE_READER"), (ROOT, "CDB$ROOT", "C##HUGEPAGE_READER")],
    ids=["installation", "root"])
def test_database_steps(twin, steps, container, reader):
    """The lines typed into SQL*Plus, in the order of the document, on the emulated data dictionary of a multitenant database."""
    connection = twin.server.connect()
    dictionary, printed = Dictionary(connection), {}
    dictionary.query("UPDATE session SET container = 'CDB$ROOT'; INSERT INTO dba_users VALUES ('DBSNMP', 'OPEN')")
    try:
        for line in steps:
            if line.startswith("hugepage-sidecar oracle ") and ">" in line:
                words, file = line.split(">")
                printed[file] = script(*shlex.split(words)[2:])
            elif line.startswith("SQL> ALTER SESSION SET CONTAINER"):
                dictionary.query("UPDATE session SET container = %s", line.rstrip(";").split()[-1].upper())
            elif line.startswith("SQL> @"):
                dictionary.run(printed[line.removeprefix("SQL> @")])
            elif line.startswith("SQL> GRANT"):
                # GRANT role TO user
                role = line.split()[2].upper()
                assert (role,) in dictionary.state()["dba_roles"] and role == reader
        [state] = dictionary.query("SELECT container FROM session")
        assert state["container"] == container and dictionary.state()["dba_objects"]
    finally:
        connection.close()
