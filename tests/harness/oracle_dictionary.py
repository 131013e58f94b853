"""Runs the sidecar's SQL*Plus scripts in PostgreSQL, on an emulated data dictionary, and stops them anywhere.

The anonymous blocks run as PL/pgSQL, translated by the rules below. Every other statement, and every EXECUTE IMMEDIATE, goes to
one function that emulates DDL: it changes the views dba_*, or raises the error that Oracle has for it.
"""

import re

import psycopg2

from harness.oracle_plsql import TYPES, replaced

SETUP = r"""
DROP SCHEMA IF EXISTS dictionary CASCADE;
CREATE SCHEMA dictionary;
SET search_path = dictionary;
CREATE TABLE dba_users (username text, account_status text, identified text);
CREATE TABLE dba_roles (role text);
CREATE TABLE dba_directories (directory_name text, directory_path text);
CREATE TABLE dba_synonyms (owner text, synonym_name text, table_owner text);
CREATE TABLE dba_objects (owner text, object_name text, object_type text, status text DEFAULT 'VALID');
CREATE TABLE dba_tab_privs (grantee text, owner text, table_name text, privilege text);
CREATE TABLE dba_sys_privs (grantee text, privilege text);
CREATE TABLE dba_errors (owner text, name text, type text, line integer, text text, sequence integer);
CREATE TABLE session (left_to_run integer, is_sys boolean, container text, version integer, creator text DEFAULT 'SYS',
    has_vault boolean DEFAULT false);
INSERT INTO session VALUES (NULL, true, 'PDB1', 19);

CREATE FUNCTION refuse(message text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'ORA-20700: %', message; END$$;
CREATE FUNCTION refuse_if(condition boolean, message text) RETURNS void LANGUAGE plpgsql
    AS $$BEGIN IF condition THEN RAISE EXCEPTION '%', message; END IF; END$$;
CREATE FUNCTION sys_context(text, text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT version < 12 FROM session) THEN RAISE undefined_object; END IF;
    RETURN (SELECT container FROM session);
END$$;

CREATE FUNCTION ddl(statement text) RETURNS void LANGUAGE plpgsql AS $ddl$
DECLARE
    words text[];
    schema text;
    object text;
    kind text;
BEGIN
    statement := upper(regexp_replace(statement, '\s+', ' ', 'g'));
    IF statement !~ '^COMMENT' THEN
        UPDATE session SET left_to_run = left_to_run - 1;
    END IF;
    IF (SELECT left_to_run < 0 FROM session) THEN RETURN; END IF;
    words := regexp_match(statement, '^(?:CREATE|CREATE OR REPLACE|DROP) (PACKAGE BODY|PACKAGE|TYPE|VIEW|TABLE) ([\w$#]+)\.([\w$#]+)');
    IF words IS NOT NULL THEN
        kind := words[1]; schema := words[2]; object := words[3];
        PERFORM refuse_if(NOT EXISTS (SELECT 1 FROM dba_users WHERE username = schema), 'ORA-01918: no user ' || schema);
    END IF;
    CASE
    WHEN statement ~ '^CREATE USER ' THEN
        words := regexp_match(statement, '^CREATE USER (\S+) (.*?)( PASSWORD EXPIRE)? ACCOUNT LOCK$');
        IF (SELECT has_vault FROM session) THEN RAISE insufficient_privilege; END IF;
        PERFORM refuse_if(EXISTS (SELECT 1 FROM dba_users WHERE username = words[1]), 'ORA-01920: conflicts with another user');
        INSERT INTO dba_users VALUES (words[1], 'LOCKED', words[2]);
    WHEN statement ~ '^CREATE ROLE ' THEN
        words := regexp_match(statement, '^CREATE ROLE (\S+)$');
        PERFORM refuse_if(EXISTS (SELECT 1 FROM dba_roles WHERE role = words[1]), 'ORA-01921: conflicts with another role');
        INSERT INTO dba_roles VALUES (words[1]);
    WHEN statement ~ '^CREATE DIRECTORY ' THEN
        words := regexp_match(statement, '^CREATE DIRECTORY (\S+) AS ''(.*)''$');
        PERFORM refuse_if(EXISTS (SELECT 1 FROM dba_directories WHERE directory_name = words[1]), 'ORA-00955: name is already used');
        INSERT INTO dba_directories VALUES (words[1], lower(words[2]));
        INSERT INTO dba_tab_privs SELECT creator, 'SYS', words[1], unnest('{READ,WRITE}'::text[]) FROM session;
    WHEN statement ~ '^CREATE PUBLIC SYNONYM ' THEN
        words := regexp_match(statement, '^CREATE PUBLIC SYNONYM (\S+) FOR (\S+)\.(\S+)$');
        PERFORM refuse_if(EXISTS (SELECT 1 FROM dba_synonyms WHERE synonym_name = words[1]), 'ORA-00955: name is already used');
        INSERT INTO dba_synonyms VALUES ('PUBLIC', words[1], words[2]);
    WHEN statement ~ '^CREATE ' THEN
        PERFORM refuse_if(EXISTS (SELECT 1 FROM dba_objects o WHERE o.owner = schema AND o.object_name = object
            AND (o.object_type = kind) <> (statement ~ '^CREATE OR REPLACE' AND o.object_type = kind)
            OR o.owner = schema AND o.object_name = object AND o.object_type <> kind
                AND 'PACKAGE BODY' NOT IN (kind, o.object_type)), 'ORA-00955: name is already used: ' || object);
        PERFORM refuse_if(kind = 'TYPE' AND object ~ '_T$' AND EXISTS (SELECT 1 FROM dba_objects o WHERE o.owner = schema
            AND o.object_name = regexp_replace(object, '_T$', '_C')), 'ORA-02303: type has dependents: ' || object);
        DELETE FROM dba_objects o WHERE o.owner = schema AND o.object_name = object AND o.object_type = kind;
        INSERT INTO dba_objects VALUES (schema, object, kind);
    WHEN statement ~ '^DROP USER ' THEN
        words := regexp_match(statement, '^DROP USER (\S+) CASCADE$');
        DELETE FROM dba_objects WHERE owner = words[1];
        DELETE FROM dba_tab_privs WHERE words[1] IN (owner, grantee);
        DELETE FROM dba_users WHERE username = words[1];
    WHEN statement ~ '^DROP ROLE ' THEN
        words := regexp_match(statement, '^DROP ROLE (\S+)$');
        DELETE FROM dba_tab_privs WHERE grantee = words[1];
        DELETE FROM dba_roles WHERE role = words[1];
    WHEN statement ~ '^DROP DIRECTORY ' THEN
        words := regexp_match(statement, '^DROP DIRECTORY (\S+)$');
        DELETE FROM dba_tab_privs WHERE table_name = words[1];
        DELETE FROM dba_directories WHERE directory_name = words[1];
    WHEN statement ~ '^DROP PUBLIC SYNONYM ' THEN
        words := regexp_match(statement, '^DROP PUBLIC SYNONYM (\S+)$');
        DELETE FROM dba_synonyms WHERE synonym_name = words[1];
    WHEN statement ~ '^DROP ' THEN
        PERFORM refuse_if(NOT EXISTS (SELECT 1 FROM dba_objects o WHERE o.owner = schema AND o.object_name = object
            AND o.object_type = kind), 'ORA-04043: object does not exist: ' || object);
        PERFORM refuse_if(kind = 'TYPE' AND statement !~ ' FORCE$', 'ORA-02303: type has dependents: ' || object);
        DELETE FROM dba_objects o WHERE o.owner = schema AND o.object_name = object AND o.object_type IN (kind, kind || ' BODY');
        DELETE FROM dba_tab_privs p WHERE p.owner = schema AND p.table_name = object;
    WHEN statement ~ '^GRANT ' THEN
        words := regexp_match(statement, '^GRANT (\S+) ON (?:DIRECTORY )?(?:([\w$#]+)\.)?(\S+) TO (\S+)$');
        PERFORM refuse_if(words IS NULL, 'ORA-00990: ' || statement);
        PERFORM refuse_if(NOT EXISTS (SELECT 1 FROM dba_users WHERE username = words[4] UNION SELECT 1 FROM dba_roles
            WHERE role = words[4]), 'ORA-01917: no user or role ' || words[4]);
        PERFORM refuse_if(words[2] = 'SYS' AND NOT (SELECT is_sys FROM session), 'ORA-01031: insufficient privileges');
        PERFORM refuse_if(words[2] <> 'SYS' AND NOT EXISTS (SELECT 1 FROM dba_objects o WHERE o.owner = words[2]
            AND o.object_name = words[3]), 'ORA-00942: no object ' || words[3]);
        PERFORM refuse_if(words[2] IS NULL AND NOT EXISTS (SELECT 1 FROM dba_directories WHERE directory_name = words[3]),
            'ORA-22930: no directory ' || words[3]);
        DELETE FROM dba_tab_privs p WHERE (p.grantee, p.table_name, p.privilege) = (words[4], words[3], words[1]);
        INSERT INTO dba_tab_privs VALUES (words[4], coalesce(words[2], 'SYS'), words[3], words[1]);
    WHEN statement ~ '^REVOKE ' THEN
        words := regexp_match(statement, '^REVOKE (\S+) ON DIRECTORY (\S+) FROM "(\S+)"$');
        PERFORM refuse_if(words[3] = (SELECT creator FROM session), 'ORA-01749: you may not revoke privileges from yourself');
        DELETE FROM dba_tab_privs p WHERE (p.grantee, p.table_name, p.privilege) = (words[3], words[2], words[1]);
    WHEN statement ~ '^COMMENT ON ' THEN
        words := regexp_match(statement, '^COMMENT ON (?:TABLE|COLUMN) ([\w$#]+)\.([\w$#]+)');
        PERFORM refuse_if(NOT EXISTS (SELECT 1 FROM dba_objects o WHERE o.owner = words[1] AND o.object_name = words[2]
            AND o.object_type IN ('TABLE', 'VIEW')), 'ORA-00942: no table or view ' || words[2]);
    ELSE
        RAISE EXCEPTION 'ORA-00900: %', statement;
    END CASE;
END $ddl$;
"""
STATE = ("dba_users", "dba_roles", "dba_directories", "dba_synonyms", "dba_objects", "dba_tab_privs", "dba_sys_privs")
RULES = [
    (r"  e_no_such_parameter EXCEPTION;\n  PRAGMA .*?;\n", ""),
    (r"WHEN e_no_such_parameter", "WHEN undefined_object"),
    (r"  e_refused EXCEPTION;\n  PRAGMA .*?;\n", ""),
    (r"WHEN e_refused", "WHEN insufficient_privilege"),
    (r":= USER;", ":= (SELECT creator FROM session);"),
    (r"RAISE_APPLICATION_ERROR\(\s*-2070\d,", "PERFORM refuse("),
    (r"EXECUTE IMMEDIATE (.*?);\n", r"PERFORM ddl(\1);\n"),
    (r"DBMS_DB_VERSION\.VERSION", "(SELECT version FROM session)"),
    (r"DBMS_DB_VERSION\.RELEASE", "2"),
    (r"DBMS_UTILITY\.COMPILE_SCHEMA\(.*?\);", "NULL;"),
    (r"DBMS_OUTPUT\.PUT_LINE\(", "PERFORM ("),
    (r"RAWTOHEX\(SYS_GUID\(\)\)", "md5('')"),
]
STATEMENT = re.compile(r"(?P<block>^(?:DECLARE|BEGIN)$.*?^END;\n/$)|^(?P<unit>CREATE OR REPLACE (?:PACKAGE|TYPE) .*?)^/$|"
                       r"^(?P<plain>(?:CREATE|GRANT|COMMENT|DROP) .*?);$", re.DOTALL | re.MULTILINE)


class Stopped(Exception):
    """The script ended early, where a test wanted it."""


class Dictionary:
    """A database in which the scripts run; made anew by each call of `reset`."""

    def __init__(self, connection: psycopg2.extensions.connection) -> None:
        self.connection = connection
        self.reset()

    def reset(self) -> None:
        self.query(SETUP)

    def query(self, statement: str, *arguments: object) -> list[dict]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, arguments or None)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []

    def run(self, script: str, most: int | None = None, comments: bool = False) -> None:
        """Run a script, at most so many statements of DDL in it; psycopg2.Error with Oracle's words if it fails.

        COMMENT, by far the most statements, only if wanted.
        """
        self.query("UPDATE session SET left_to_run = %s", most)
        plain: list[str] = []
        for match in STATEMENT.finditer(script):
            if match["block"] is None:
                if comments or not match["plain"] or not match["plain"].startswith("COMMENT"):
                    plain.append(match["unit"] or match["plain"])
                continue
            self._run_ddl(plain)
            self.query(_translated(match["block"]))
            self._unless_stopped()
        self._run_ddl(plain)

    def _run_ddl(self, statements: list[str]) -> None:
        self.query("SELECT ddl(statement) FROM unnest(%s::text[]) statement", statements)
        statements.clear()
        self._unless_stopped()

    def _unless_stopped(self) -> None:
        if self.query("SELECT 1 FROM session WHERE left_to_run < 0"):
            raise Stopped

    def state(self) -> dict[str, list[tuple]]:
        """All that is there, sorted."""
        return {view: sorted(tuple(row.values()) for row in self.query(f"SELECT * FROM {view}")) for view in STATE}


def _translated(block: str) -> str:
    block = re.sub(r"^ *--.*$", "", block, flags=re.MULTILINE).removesuffix("/")
    for pattern, replacement in RULES:
        block = re.sub(pattern, replacement, block, flags=re.DOTALL)
    records = {f"  {name} record;" for name in re.findall(r"FOR (l_\w+) IN \(", block)}
    block = block.removeprefix("DECLARE\n")
    return f"DO $block$ DECLARE\n{' '.join(sorted(records))}\n{replaced(block, TYPES)}$block$"
