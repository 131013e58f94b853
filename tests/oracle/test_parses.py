"""Two parsers of Oracle's SQL accept every script with all valid names, and names cannot inject SQL."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness.oracle_files import REPOSITORY, script
from harness.sidecar import binary

pytestmark = pytest.mark.no_server

SCRIPTS = ("install-sql", "uninstall-sql")
RULES = REPOSITORY / "tests/oracle/validators/rules.xml"
CHOICES = {
    "default": (),
    "common": ("--schema", "C##HP", "--role", "C##HP_READER", "--synonyms"),
    "tables": ("--external-tables", "--schema", "HP"),
    "long": ("--schema", "A" * 30, "--role", "B" * 30, "--directory", "C" * 30, "--dir", "/" + "d" * 199),
}


def text(name: str, choice: str = "default") -> str:
    """A script with those names."""
    return script(name, *CHOICES[choice])


BROKEN = [("END LOOP;", "END LOP;"), ("AUTHID DEFINER AS", "AUTHID DEFINER"), (") r\n", ") r WHERE\n"), ("(l_row);", "(l_row;")]


def pmd(validators: Path, files: dict[str, str]) -> dict[str, str]:
    """The violations that PMD finds, by file; empty if all files parse and follow the rules."""
    directory = Path(tempfile.mkdtemp())
    try:
        for name, sql in files.items():
            # The only SQL*Plus command that PMD does not parse.
            (directory / name).write_text(re.sub(r"^WHENEVER .*\n", "", sql, flags=re.MULTILINE))
        done = subprocess.run(
            ["java", "-cp", f"{validators}/lib/*", "net.sourceforge.pmd.cli.PmdCli", "check", "-d", directory, "-z", directory,
             "-R", RULES, "-f", "text", "--no-cache", "--no-progress", "--use-version", "plsql-21c"],
            capture_output=True, text=True)
    finally:
        shutil.rmtree(directory)
    assert done.returncode in (0, 4, 5), done.stderr
    found = {name: "\n".join(line for line in done.stdout.splitlines() if line.startswith((f"{name}\t", f"{name}:")))
             for name in files}
    assert done.returncode == 0 or any(found.values()), done.stdout
    return {name: errors for name, errors in found.items() if errors}


def antlr(validators: Path, sql: str) -> subprocess.CompletedProcess:
    """The exit status is 0 if the SQL parses, otherwise 1."""
    return subprocess.run(["node", "parse.mjs"], cwd=validators, input=sql, capture_output=True, text=True)


def external_tables(sql: str) -> list[str]:
    return re.findall(r"^CREATE TABLE .*?;$", sql, re.DOTALL | re.MULTILINE)


def test_scripts_parse_by_pmd(validators):
    files = {f"{choice}-{name}.sql": text(name, choice) for choice in CHOICES for name in SCRIPTS}
    assert pmd(validators, files) == {}


def test_pmd_refuses(validators):
    sql = script("install-sql")
    files = {}
    for number, (old, new) in enumerate(BROKEN):
        assert old in sql
        files[f"broken-{number}.sql"] = sql.replace(old, new, 1)
    assert files.keys() - pmd(validators, files).keys() == set()


@pytest.mark.long
def test_external_tables_by_antlr(validators):
    ddl = external_tables(script("install-sql"))
    assert len(ddl) == 4
    done = antlr(validators, "\n".join(ddl))
    assert (done.returncode, done.stdout) == (0, "4 statements\n"), done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("broken", [("CHAR(20)", "CHAR(20"), ("SKIP 1", "SKIP"), ("TERMINATED BY '|'", "TERMINATED '|'"),
                                    ("REJECT LIMIT 0", "REJECT 0")])
def test_antlr_refuses(validators, broken):
    ddl = external_tables(script("install-sql"))[0]
    assert broken[0] in ddl
    assert antlr(validators, ddl.replace(*broken, 1)).returncode == 1


@pytest.mark.parametrize("option,value", [
    ("--schema", "A; DROP USER SYS"), ("--schema", "A'"), ("--schema", 'A"'), ("--schema", "1A"),
    ("--schema", "A" * 31), ("--role", "DBA TO PUBLIC"), ("--directory", "A.B"), ("--directory", ""),
    ("--dir", "/a'; --"), ("--dir", "relative"), ("--dir", "/a/../b"), ("--dir", "/a\nb"), ("--dir", "/a&b"),
])
def test_no_injection(option, value):
    done = subprocess.run([binary(), "oracle", "install-sql", option, value], capture_output=True, text=True)
    assert done.returncode == 64 and done.stdout == "" and option in done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_avoid_sqlplus_pitfalls(name):
    """SQL*Plus continues a line after a hyphen, prompts at an ampersand, and ends a statement at a blank line."""
    sql = text(name, "long")
    assert sql.isascii() and "&" not in sql
    for line in sql.splitlines():
        assert len(line) < 1000 and not re.search(r"[^-]-$", line) and not (line.startswith("--") and line.endswith(";")), line
    outside = re.sub(r"^(DECLARE|BEGIN|CREATE OR REPLACE (PACKAGE|TYPE)).*?^/$", "", sql, flags=re.DOTALL | re.MULTILINE)
    for statement in re.findall(r"^(?:CREATE|SELECT|GRANT|COMMENT|DROP)\b[^;]*?(?:;$|\Z)", outside, re.MULTILINE):
        assert "\n\n" not in statement.strip(), statement


@pytest.mark.parametrize("name", SCRIPTS)
def test_names_fit_into_30_bytes(name):
    """The limit of 11.2, for names of objects, columns and variables alike."""
    sql = re.sub(r"--.*$|'(?:[^']|'')*'", "", text(name, "long"), flags=re.MULTILINE)
    assert {word for word in re.findall(r"[A-Za-z][\w$#]*", sql) if len(word) > 30} == set()


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_restore_the_defaults(name):
    """What outlasts a script is set to SQL*Plus's default at its end."""
    sql = text(name)
    changed = re.findall(r"^(SET \w+|WHENEVER \w+)", sql, re.MULTILINE)
    settings = {setting for setting in changed if setting != "SET ECHO"}
    assert len(changed) == 2 * len(settings) + 1
    tail = sql[sql.index("PROMPT Done"):]
    assert set(re.findall(r"^(SET \w+|WHENEVER \w+)", tail, re.MULTILINE)) == settings


def test_external_tables_need_no_utl_file():
    assert "UTL_FILE" in script("install-sql")
    without = re.sub(r"--.*$", "", script("install-sql", "--external-tables"), flags=re.MULTILINE)
    assert "UTL_FILE" not in without and "SYS." not in without
