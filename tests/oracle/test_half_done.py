"""An installation or upgrade that ended anywhere is completed by the same script, and removed by the other."""

from contextlib import suppress

import psycopg2
import pytest
from harness.oracle_dictionary import Dictionary, Stopped
from harness.oracle_files import script

pytestmark = pytest.mark.own_servers

INSTALL, UNINSTALL = script("install-sql"), script("uninstall-sql")
MOST = 200


@pytest.fixture(scope="module")
def connection(twin):
    connection = twin.server.connect()
    yield connection
    connection.close()


@pytest.fixture
def dictionary(connection):
    return Dictionary(connection)


@pytest.fixture
def complete(dictionary):
    """The state after an undisturbed installation."""
    dictionary.run(INSTALL)
    return dictionary.state()


def early_ends(dictionary, before, interrupted):
    """States in which the script may end, after `before` ran: after each of the first statements, then after every fifth."""
    dictionary.reset()
    for script_before in before:
        dictionary.run(script_before)
    dictionary.query("BEGIN; SAVEPOINT begun")
    try:
        for most in (*range(12), *range(12, MOST, 5)):
            dictionary.query("ROLLBACK TO begun")
            try:
                dictionary.run(interrupted, most)
            except Stopped:
                yield most
            else:
                return
        raise AssertionError(f"the script has more than {MOST} statements")
    finally:
        dictionary.query("ROLLBACK")


def test_installation_is_complete(dictionary, complete):
    dictionary.run(INSTALL, comments=True)
    assert dictionary.state() == complete
    names = {name for _, name, kind, _ in complete["dba_objects"] if kind == "VIEW"}
    assert {"HUGEPAGE_STATUS", "HUGEPAGE_FINDINGS"} <= names
    assert ("HUGEPAGE", "SYS", "UTL_FILE", "EXECUTE") in complete["dba_tab_privs"]
    assert ("HUGEPAGE_READER", "HUGEPAGE", "HUGEPAGE_STATUS", "SELECT") in complete["dba_tab_privs"]
    assert not [row for row in complete["dba_tab_privs"] if row[2] == "HUGEPAGE_ADVISOR"]


def test_nobody_keeps_write_on_the_directory(dictionary):
    """Its creator gets it with CREATE DIRECTORY, and cannot take it from himself."""
    dictionary.query("UPDATE session SET creator = 'SYSTEM'")
    dictionary.run(INSTALL)
    write = [row for row in dictionary.state()["dba_tab_privs"] if row[3] == "WRITE"]
    assert write == [("SYSTEM", "SYS", "HUGEPAGE_DIR", "WRITE")]
    dictionary.query("UPDATE session SET creator = 'SYS'")
    dictionary.run(INSTALL)
    assert [row for row in dictionary.state()["dba_tab_privs"] if row[3] == "WRITE" and row[0] != "SYS"] == []


def test_database_vault(dictionary, complete):
    """Who may not create a user is told who may, and the script goes on from there."""
    dictionary.reset()
    dictionary.query("UPDATE session SET has_vault = true")
    with pytest.raises(psycopg2.Error, match="DV_ACCTMGR"):
        dictionary.run(INSTALL)
    dictionary.query("INSERT INTO dba_users VALUES ('HUGEPAGE', 'LOCKED', 'NO AUTHENTICATION')")
    dictionary.run(INSTALL)
    assert dictionary.state() == complete


def test_public_synonyms_only_if_asked_for(dictionary, complete):
    assert complete["dba_synonyms"] == []
    dictionary.query("INSERT INTO dba_synonyms VALUES ('PUBLIC', 'HUGEPAGE_STATUS', 'SCOTT')")
    with pytest.raises(psycopg2.Error, match="without --synonyms"):
        dictionary.run(script("install-sql", "--synonyms"))
    dictionary.query("DELETE FROM dba_synonyms")
    dictionary.run(script("install-sql", "--synonyms"))
    names = {name for _, name, kind, _ in complete["dba_objects"] if kind == "VIEW"}
    assert {name for _, name, _ in dictionary.state()["dba_synonyms"]} == names | {"HUGEPAGE_ADVISOR"}


@pytest.mark.parametrize("before", [(), (INSTALL,)], ids=["installation", "upgrade"])
def test_the_script_completes_it(dictionary, complete, before):
    ends = 0
    for most in early_ends(dictionary, before, INSTALL):
        ends += 1
        dictionary.run(INSTALL)
        assert dictionary.state() == complete, f"after {most} statements"
    assert ends > 15


@pytest.mark.parametrize("interrupted", [INSTALL, UNINSTALL], ids=["install", "uninstall"])
def test_uninstallation_removes_it(dictionary, interrupted):
    dictionary.reset()
    empty = dictionary.state()
    before = () if interrupted is INSTALL else (INSTALL,)
    for most in early_ends(dictionary, before, interrupted):
        if dictionary.state()["dba_users"]:
            dictionary.run(UNINSTALL)
        assert dictionary.state() == empty, f"after {most} statements"


@pytest.mark.parametrize("theirs,says", [
    ("INSERT INTO dba_users VALUES ('HUGEPAGE', 'OPEN')", "can log in"),
    ("INSERT INTO dba_users VALUES ('HUGEPAGE', 'LOCKED'); INSERT INTO dba_objects VALUES ('HUGEPAGE', 'ORDERS', 'TABLE')", "other objects"),
    ("INSERT INTO dba_roles VALUES ('HUGEPAGE_READER')", "role HUGEPAGE_READER already exists"),
    ("INSERT INTO dba_users VALUES ('HUGEPAGE', 'LOCKED'); INSERT INTO dba_sys_privs VALUES ('HUGEPAGE_READER', 'SELECT ANY TABLE')",
     "system privileges"),
    ("INSERT INTO dba_directories VALUES ('HUGEPAGE_DIR', '/elsewhere')", "is not /var/lib/hugepage-sidecar/oracle"),
    ("INSERT INTO dba_directories VALUES ('HUGEPAGE_DIR', '/var/lib/hugepage-sidecar/oracle')", "directory HUGEPAGE_DIR already exists"),
    ("UPDATE session SET container = 'CDB$ROOT'", "ALTER SESSION SET CONTAINER"),
    ("UPDATE session SET is_sys = false", "external-tables"),
])
def test_what_is_another_s_is_kept(dictionary, theirs, says):
    dictionary.query(theirs)
    before = dictionary.state()
    with pytest.raises(psycopg2.Error, match=says):
        dictionary.run(INSTALL)
    if "is_sys" not in theirs:
        assert dictionary.state() == before
    with suppress(psycopg2.Error):
        dictionary.run(UNINSTALL)
    assert "is_sys" in theirs or dictionary.state() == before or "container" in theirs


@pytest.mark.parametrize("options,grant", [(("--external-tables",), None), ((), "PUBLIC"), ((), "HUGEPAGE")])
def test_dba_without_sys(dictionary, options, grant):
    """By external tables alone, or where UTL_FILE is granted already."""
    dictionary.query("UPDATE session SET is_sys = false")
    if grant:
        dictionary.query("INSERT INTO dba_tab_privs VALUES (%s, 'SYS', 'UTL_FILE', 'EXECUTE')", grant)
    for _ in ("installation", "upgrade"):
        dictionary.run(script("install-sql", *options))
    assert ("HUGEPAGE_READER", "HUGEPAGE", "HUGEPAGE_STATUS", "SELECT") in dictionary.state()["dba_tab_privs"]


@pytest.mark.parametrize("version,identified", [(11, "IDENTIFIED BY"), (12, "IDENTIFIED BY"), (19, "NO AUTHENTICATION")])
def test_user_without_a_known_password(dictionary, version, identified):
    dictionary.query("UPDATE session SET version = %s", version)
    dictionary.run(INSTALL)
    [user] = dictionary.query("SELECT * FROM dba_users")
    assert user["identified"].startswith(identified) and user["account_status"] == "LOCKED"


def test_user_that_a_dba_created(dictionary, complete):
    """For a profile whose rules refuse every password of ours."""
    dictionary.reset()
    dictionary.query("INSERT INTO dba_users VALUES ('HUGEPAGE', 'LOCKED', 'NO AUTHENTICATION')")
    dictionary.run(INSTALL)
    assert dictionary.state() == complete


def test_common_user_in_the_root(dictionary):
    names = ("--schema", "C##HUGEPAGE", "--role", "C##HUGEPAGE_READER")
    dictionary.query("UPDATE session SET container = 'CDB$ROOT'")
    dictionary.run(script("install-sql", *names))
    dictionary.run(script("uninstall-sql", *names))
    assert not any(dictionary.state().values())


def test_password_satisfies_verification_functions():
    """At least 2 upper, 2 lower, 2 digits, 2 special characters and 15 in all; 30 bytes are the most."""
    start = INSTALL.split('IDENTIFIED BY "')[1].split("'")[0]
    assert sum(letter.isupper() for letter in start) >= 2 and sum(letter.islower() for letter in start) >= 2
    assert sum(letter in "#_" for letter in start) >= 2 and len(start) + 22 == 30 and start[0].isalpha()
