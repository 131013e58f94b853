"""Each command of the pages that people install by is run as it stands, or is in NOT_RUN, with the reason."""

import os
import re
import subprocess

import pytest
from machine import REPOSITORY

DOCUMENTS = ["packaging/README.md", "docs/install.md"]
PRINTED_PG_CONFIG = re.compile("/usr/(lib/postgresql/17|pgsql-17)/bin/pg_config")
HERE = "tests/unit/test_documented_commands.py"
RUN_BY = {
    "README.md": {
        HERE: ["DEBFULLNAME="],
        "scripts/fresh-checks.sh": ["./dev demo", "./dev test"],
        "scripts/tree/try-package": [
            "apt-get install -s ./", "apt-get install ./postgresql-17", "sudo -u postgres psql -c 'CREATE",
            "sudo -u postgres psql -xc", "hugepage-sidecar status", "hugepage-sidecar size", "hugepage-sidecar report"],
    },
    "docs/install.md": {
        HERE: ["DEBFULLNAME=", "apt-get install gcc", "make PG_CONFIG", "make WITH_SIDECAR", "sudo make install", "make installcheck",
               "sudo make uninstall", "sed "],
        "scripts/supply.sh": ["tar -xJf", "rpmbuild"],
        "scripts/tree/try-package": [
            "apt-get install -s ./", "apt-get install ./postgresql-17", "apt-get install ./hugepage-sidecar",
            "apt-get purge postgresql", "apt-get purge hugepage-sidecar",
            "sudo -u postgres psql -d postgres -c 'CREATE", "sudo -u postgres psql -d DATABASE -c 'DROP", "systemctl enable --now",
            "systemctl enable hugepage-reserve"],
        "scripts/try-rpms": ["rpm -U", "rpm -e hugepage-sidecar"],
        "scripts/try-tar": ["tar -xzf", "tar -tzf"],
    },
    "packaging/README.md": {"scripts/supply.sh": ["make PG_CONFIG", "make install", "PGRX_PG_CONFIG_PATH"]},
}
"""How the commands of a page begin, by what runs them. Of the README's ./dev fresh runs whatever it shows."""
NOT_RUN = {
    "README.md": {},
    "docs/install.md": {"sudo dnf": "there is no Enterprise Linux here",
                        "rpm -e pg_hugepages": "its RPM needs PostgreSQL's of Enterprise Linux",
                        "systemctl daemon-reload": "systemd does not run in a tree; that the packages call it is looked at"},
    "packaging/README.md": {},
}


def printed(document: str) -> list[str]:
    """The commands in the blocks of a page, each with the lines that continue it; not what programs answer, nor configuration."""
    text = re.sub(r"^> ?", "", (REPOSITORY / document).read_text().replace("\\\n", " "), flags=re.MULTILINE)
    fenced = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = fenced.findall(text) + re.findall(r"^ {4}.*$", fenced.sub("", text), re.MULTILINE)
    lines = [line.strip() for block in blocks if not re.match(r"=# |\d\d:\d\d:", block) for line in block.splitlines()]
    return [line for line in lines if line != "shared_preload_libraries = 'pg_hugepages'"]


def commands(document: str, program: str) -> list[str]:
    """Those that run a program."""
    return [line for line in printed(document) if re.match(rf"(sudo |\w+=('[^']*'|\S+) )*{program}( |$)", line)]


@pytest.mark.parametrize("document", RUN_BY)
def test_each_command_is_run(document):
    beginnings = [beginning for runs in RUN_BY[document].values() for beginning in runs] + list(NOT_RUN[document])
    found = {command: [beginning for beginning in beginnings if command.startswith(beginning)] for command in printed(document)}
    assert {command: by for command, by in found.items() if len(by) != 1} == {}
    assert {beginning for by in found.values() for beginning in by} == set(beginnings)


@pytest.mark.parametrize(("document", "script"), [(document, script) for document, runs in RUN_BY.items() for script in runs if script != HERE])
def test_it_is_read_from_the_page(document, script):
    text = (REPOSITORY / script).read_text()
    assert document in text
    if script != "scripts/fresh-checks.sh":
        assert [beginning for beginning in RUN_BY[document][script] if beginning not in text] == []


def documented(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([REPOSITORY / "scripts/documented", *words], text=True, capture_output=True)


@pytest.mark.parametrize("document", RUN_BY)
def test_the_script_reads_what_is_printed(document):
    for command in printed(document):
        assert documented(document, command.split("  ")[0]).stdout.replace("\\\n", " ").strip() == command


@pytest.mark.parametrize("words", [
    ["docs/install.md", "sudo"], ["docs/install.md", "apt-get upgrade"], ["docs/install.md", "rpm -U", "1.0=2.0"], ["docs/nowhere.md", "rpm"],
])
def test_the_script_stops_where_the_page_has_changed(words):
    outcome = documented(*words)
    assert outcome.returncode != 0 and not outcome.stdout and outcome.stderr


def test_the_script_fills_in_what_is_left_to_the_reader():
    assert documented("docs/install.md", "rpm -U", "VERSION=1.0.0", "x86_64=a&b").stdout == "rpm -U hugepage-sidecar-1.0.0-1.a&b.rpm\n"


@pytest.mark.parametrize("command", sorted({*commands("README.md", r"\./dev"), *commands("docs/install.md", r"\./dev")}))
def test_dev_takes_it(command, tmp_path):
    (tmp_path / "dev").write_text(f"""#!/usr/bin/env bash
        set -euo pipefail && cd '{REPOSITORY}' && CACHE={tmp_path}
        . scripts/progress.sh && . scripts/detection.sh && . scripts/trees.sh && . scripts/arguments.sh && check_arguments "$@" && echo takes "$@\"""")
    (tmp_path / "dev").chmod(0o755)
    taken = subprocess.run(["sh", "-c", command], cwd=tmp_path, text=True, capture_output=True)
    assert taken.stdout == "takes " + command.split("./dev ")[1] + "\n", taken


def test_what_apt_installs_is_what_dev_installs():
    """Of Debian's packages those that compiling needs; libc6-dev and zlib1g-dev come with them."""
    [command] = commands("docs/install.md", "apt-get install gcc")
    asked = subprocess.run(["bash", "-euc", ". scripts/packages.sh; packages_for build"], cwd=REPOSITORY, check=True, text=True, stdout=subprocess.PIPE)
    assert set(command.split()[2:]) == set(asked.stdout.split()) - {"libc6-dev", "zlib1g-dev"} | {"postgresql-server-dev-17"}


def test_the_unit_starts_what_make_installs(tmp_path):
    [command] = commands("docs/install.md", "sed")
    subprocess.run(["sh", "-euc", command.replace("/etc/systemd/system", str(tmp_path))], cwd=REPOSITORY, check=True)
    unit = (tmp_path / "hugepage-sidecar.service").read_text()
    assert "\nExecStart=/usr/local/bin/hugepage-sidecar watch $ORACLE_OPTIONS $TEXTFILE_OPTIONS\n" in unit and "/usr/bin/" not in unit


@pytest.mark.parametrize(("document", "command"), [(document, command) for document in DOCUMENTS for command in commands(document, "make")])
def test_make_takes_it(document, command, pg_config, tmp_path):
    words = PRINTED_PG_CONFIG.sub(str(pg_config), command.removeprefix("sudo ")).replace("DESTDIR=...", f"DESTDIR={tmp_path}")
    made = subprocess.run(["sh", "-c", words.replace("make", "make --dry-run", 1)], cwd=REPOSITORY, text=True,
                          env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert made.returncode == 0, made.stdout
    target = next((word for word in words.split()[1:] if "=" not in word), "all")
    assert target == "installcheck" or re.search({"all": "cargo build", "install": "install .*hugepage", "uninstall": "rm -f"}[target], made.stdout)


@pytest.mark.parametrize("command", commands("packaging/README.md", "cargo"))
def test_cargo_takes_it(command, tmp_path):
    """Up to what would be compiled: rust-version, features and the lock file are in order. The crates are there or are fetched."""
    words = command.replace(" --offline", "") + " --unit-graph -Z unstable-options"
    planned = subprocess.run(["sh", "-c", words], cwd=REPOSITORY, text=True, capture_output=True,
                             env={**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_DIR": str(tmp_path)})
    assert planned.returncode == 0, planned.stderr
    assert '"name":"pg_hugepages"' in planned.stdout


def test_nothing_names_a_person_who_is_not_there():
    """Packages are somebody's: DEBFULLNAME and DEBEMAIL say whose."""
    files = [path for path in (REPOSITORY / "packaging").rglob("*") if path.is_file()]
    assert len(files) > 30 and [str(path) for path in files if re.search(rb"@example\.|nobody@", path.read_bytes())] == []
    assert "\nMaintainer: @MAINTAINER@\n" in (REPOSITORY / "packaging/debian/control.in").read_text()


@pytest.mark.parametrize(("tag", "version"), [("v1.0.0", "1.0.0"), ("v1.10.2", "1.10.2"), ("v2.0.0-rc1", None), ("latest", None)])
def test_the_watch_file_finds_releases(tag, version):
    pattern = re.search(r"@PROJECT_URL@/tags (\S+)", (REPOSITORY / "packaging/debian/watch").read_text()).group(1)
    found = re.fullmatch(pattern, f"https://example.invalid/pg/archive/refs/tags/{tag}.tar.gz")
    assert (found and found.group(1)) == version


def test_an_archive_names_its_repository(pg_config, tmp_path):
    """What make dist runs on the copy of Cargo.toml that it packs."""
    planned = subprocess.run(["make", "--dry-run", "dist", f"PG_CONFIG={pg_config}", "PROJECT_URL=https://example.invalid/pg"],
                             cwd=REPOSITORY, check=True, text=True, capture_output=True).stdout
    [edit] = re.findall(r"sed -i .*repository.*", planned)
    copy = tmp_path / edit.split()[-1]
    copy.parent.mkdir(parents=True)
    copy.write_bytes((REPOSITORY / "Cargo.toml").read_bytes())
    subprocess.run(["sh", "-c", edit], cwd=tmp_path, check=True)
    assert copy.read_text().count('\n[package]\nrepository = "https://example.invalid/pg"\n') == 1
