"""Runs the PL/SQL package hugepage_advisor in PostgreSQL: its text, translated to PL/pgSQL by the rules below.

The SQL parsers of tests/oracle do not check declarations. PostgreSQL does: it refuses a function, column, view or comment
that names an undeclared object. orafce has utl_file, instr and so on. What only Oracle has (session context, dates) is
replaced; PostgreSQL refuses whatever else the rules do not translate.
"""

import re
from pathlib import Path

from harness import oracle_loader
from harness.cluster import Cluster
from harness.oracle_files import script

SETUP = """
CREATE EXTENSION orafce;
CREATE SCHEMA hugepage;
CREATE ROLE hugepage_reader;
CREATE FUNCTION hugepage.to_number(text) RETURNS numeric STRICT IMMUTABLE LANGUAGE sql AS 'SELECT $1::numeric';
CREATE FUNCTION hugepage.to_date(text, text) RETURNS timestamp STRICT IMMUTABLE LANGUAGE sql
    AS 'SELECT pg_catalog.to_timestamp($1, $2)::timestamp';
CREATE FUNCTION hugepage.to_date(text, text, text) RETURNS timestamp STRICT IMMUTABLE LANGUAGE sql
    AS $$SELECT CASE $3 WHEN 'NLS_CALENDAR=GREGORIAN' THEN hugepage.to_date($1, $2) END$$;
CREATE FUNCTION hugepage.nvl(text, text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT coalesce($1, $2)';
CREATE FUNCTION hugepage.sys_context(text, text) RETURNS text LANGUAGE sql
    AS $$SELECT current_setting('twin.' || lower($2), true)$$;
CREATE VIEW hugepage.session_roles AS SELECT coalesce(nullif(current_setting('twin.role', true), ''), 'DBA') AS role;
"""
TYPES = [(r"\bhp_(\w+)_c\b", r"hp_\1_t[]"), (r"\blines_t\b", "text[]"), (r"\bPLS_INTEGER\b", "integer"),
         (r"\bVARCHAR2\b(\(\d+\))", r"varchar\1"), (r"\bVARCHAR2\b", "text"), (r"\bNUMBER\b", "numeric"),
         (r"\bDATE\b", "timestamp")]
WORDS = [
    # A constructor without arguments, before one with them.
    (r"\b(?:lines_t|hp_\w+_c)\(\)", "'{}'"),
    (r"(\w+)\.EXTEND;\s+\1\(\1\.COUNT\) := (.*?);", r"\1 := array_append(\1, \2);"),
    (r"SELECT (hp_\w+_t)\((.*?)\n\s+\)\s+BULK COLLECT INTO (\w+)",
     r"SELECT coalesce(array_agg(ROW(\2)::\1), '{}') INTO \3"),
    (r"\b(hp_\w+_t)\(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)", r"ROW(\2)::\1"),
    (r"\b(l_lines)\(i\)", r"\1[i]"),
    (r"\b(\w_snapshot\.\w+)\((i|1)\)\.(\w+)", r"(\1[\2]).\3"),
    (r"\b(\w_snapshot\.\w+)\((i|1)\)", r"\1[\2]"),
    (r"\b(\w+(?:\.\w+)?)\.COUNT\b", r"coalesce(cardinality(\1), 0)"),
    (r"UTL_FILE\.GET_LINE\((\w+), (\w+)\)", r"\2 := utl_file.get_line(\1)"),
    (r"UTL_FILE\.FCLOSE\((\w+)\)", r"\1 := utl_file.fclose(\1)"),
    (r"PIPE ROW \((\w+)\)", r"RETURN NEXT \1"),
    (r"\bNVL\b", "coalesce"),
    (r"\bc_attempts\b", "20"),
    (r"\bc_stale\b", "'The last snapshot of hugepage-sidecar is stale.'"),
    # In Oracle an empty text is NULL, and concatenation treats NULL as an empty text.
    (r"RETURN (SUBSTR\(.*\));", r"RETURN NULLIF(\1, '');"),
    (r"\|\| l_row\.hint", "|| coalesce(l_row.hint, '')"),
    (r"CAST\(SYS_EXTRACT_UTC\(SYSTIMESTAMP\) AS DATE\)", "clock_timestamp() AT TIME ZONE 'UTC'"),
    (r"ROUND\(\((l_now - TO_DATE\(.*?\))\) \* 86400\)", r"ROUND(EXTRACT(epoch FROM \1))"),
]
FUNCTION = re.compile(r"^  FUNCTION (\w+)(\(.*?\))? RETURN (\w+)( PIPELINED)? IS\n(.*?)^  BEGIN\n(.*?)^  END \1;$",
                      re.DOTALL | re.MULTILINE)


def replaced(text: str, rules: list[tuple[str, str]]) -> str:
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL if r"\n" in pattern or ".*?);" in pattern else 0)
    return text


def functions(install: str) -> list[str]:
    """CREATE FUNCTION for each function in the package body."""
    body = re.search(r"^CREATE OR REPLACE PACKAGE BODY .*?^/$", install, re.DOTALL | re.MULTILINE).group()
    made = []
    for name, parameters, returns, pipelined, declared, code in FUNCTION.findall(body):
        returns = replaced(returns, TYPES)
        returns = f"SETOF {returns.removesuffix('[]')}" if pipelined else returns
        declared, code = (replaced(replaced(part, WORDS), TYPES) for part in (declared, code))
        parameters = replaced(parameters or "()", TYPES).replace(" IN ", " ")
        made.append(f"CREATE FUNCTION hugepage.{name}{parameters} RETURNS {returns} LANGUAGE plpgsql AS $plsql$\n"
                    f"DECLARE\n{declared}BEGIN\n{code}END $plsql$")
    assert len(made) == len(re.findall(r"^  FUNCTION ", body, re.MULTILINE)), "a function that FUNCTION does not match"
    return made


def views(install: str, begin: str = "") -> list[str]:
    """The statements CREATE VIEW, COMMENT and GRANT of the script, or those that begin so."""
    made = re.findall(r"^CREATE OR REPLACE VIEW .*?;$", install, re.DOTALL | re.MULTILINE)
    names = "|".join(re.findall(r"VIEW \w+\.(\w+)", "\n".join(made)))
    comments = re.findall(r"^COMMENT ON .*;$", install, re.MULTILINE)
    grants = re.findall(r"^GRANT SELECT ON .*;$", install, re.MULTILINE)
    text = [re.sub(r"TABLE\((.*)\) r", r"\1 r", statement) for statement in made]
    text += [re.sub(rf"^COMMENT ON TABLE (\w+\.(?:{names}) )", r"COMMENT ON VIEW \1", comment) for comment in comments]
    return [statement.replace("HUGEPAGE.hugepage_advisor.", "hugepage.") for statement in text + grants
            if statement.startswith(begin)]


class PlsqlPackage:
    """The package in a server, with its types, tables and views over the files in one directory."""

    def __init__(self, server: Cluster, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.install = script("install-sql")
        self.tables = oracle_loader.tables(self.install)
        self.connection = server.connect()
        self.run(SETUP)
        self.run("SELECT set_config('search_path', 'hugepage, oracle, pg_catalog', false)")
        self.run("INSERT INTO utl_file.utl_file_dir (dir, dirname) VALUES (%s, 'HUGEPAGE_DIR')", str(directory))
        for table in self.tables.values():
            columns = ", ".join(f"{column.name} {column.type}({column.size})" for column in table.columns)
            columns = replaced(columns, TYPES)
            self.run(f"CREATE TABLE {table.name} ({columns})")
            self.run(f"CREATE TYPE {table.name}_t AS ({columns}, consistent varchar(1))")
        record = re.search(r"TYPE snapshot_t IS RECORD (\(.*?\n  \));", self.install, re.DOTALL).group(1)
        self.run(f"CREATE TYPE snapshot_t AS {replaced(record, TYPES)}")
        self.run("SET check_function_bodies = off")
        for statement in functions(self.install) + views(self.install):
            self.run(statement)

    def replace_package(self, install: str) -> None:
        """Define the functions and views of another script instead."""
        self.run("DROP FUNCTION " + ", ".join(f"hugepage.{row['name']}" for row in self.run(
            "SELECT p.oid::regprocedure::text AS name FROM pg_proc p JOIN pg_type t ON t.oid = prorettype "
            "WHERE pronamespace = 'hugepage'::regnamespace AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')"))
            .replace("hugepage.hugepage.", "hugepage.") + " CASCADE")
        for statement in functions(install) + views(install):
            self.run(statement)

    def run(self, statement: str, *arguments: object) -> list[dict]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, arguments or None)
            return [dict(row) for row in cursor.fetchall()] if cursor.description else []

    def rows(self, function: str, route: str = "FILE") -> list[dict]:
        """The rows of a pipelined function."""
        return self.run(f"SELECT * FROM hugepage.{function}(%s)", route)

    def load_tables(self) -> None:
        """Fill the tables as ORACLE_LOADER would now."""
        for name, rows in oracle_loader.load(self.install, self.directory).items():
            self.run(f"TRUNCATE {name}")
            for row in rows:
                self.run(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", *row.values())
