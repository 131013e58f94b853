"""An emulation of the access driver ORACLE_LOADER, for the access parameters of the project's external tables only.

Names, order, widths and types come from the DDL. A record that Oracle would reject raises Refused, because REJECT LIMIT 0
ends the SELECT at the first one; so does DDL with other access parameters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any


class Refused(Exception):
    """Oracle's error, with its number in front."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    size: int


@dataclass
class ExternalTable:
    name: str
    columns: list[Column]
    location: str
    delimiter: str
    skip: int
    fields: dict[str, int] = field(default_factory=dict)
    """Width of each field, in the order of the file."""

    def load(self, data: bytes) -> list[dict[str, Any]]:
        """The rows of a file."""
        records = data.split(b"\n")
        if records[-1] == b"":
            records.pop()
        return [self._row(record) for record in records[self.skip:]]

    def _row(self, record: bytes) -> dict[str, Any]:
        try:
            text = record.decode("ascii")
        except UnicodeDecodeError as error:
            raise Refused(f"KUP-04020: not US7ASCII: {record!r}") from error
        values = text.split(self.delimiter)
        found: dict[str, str | None] = {}
        for position, (name, width) in enumerate(self.fields.items()):
            # MISSING FIELD VALUES ARE NULL; text after the last field is ignored.
            value = values[position] if position < len(values) else ""
            if len(value) > width:
                raise Refused(f"KUP-04026: field {name} is too long for CHAR({width}): {value!r}")
            found[name] = value or None
        return {column.name: _converted(column, found[column.name]) for column in self.columns}


def _converted(column: Column, value: str | None) -> Any:
    if value is None:
        return None
    if column.type == "VARCHAR2":
        if len(value) > column.size:
            raise Refused(f"ORA-12899: {value!r} is too large for {column.name} ({column.size})")
        return value
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise Refused(f"ORA-01722: {value!r} is no number for {column.name}") from None
    if number != int(number) or abs(number) >= 10 ** column.size:
        raise Refused(f"ORA-01438: {value!r} is too large for {column.name} ({column.size})")
    return int(number)


TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|([A-Za-z][\w$#.]*)|(\d+)|([(),;]))")


class _Ddl:
    """The tokens of one CREATE TABLE."""

    def __init__(self, text: str) -> None:
        self.tokens = list(self._split(text))

    @staticmethod
    def _split(text: str) -> Iterator[str]:
        position = 0
        while text[position:].strip():
            match = TOKEN.match(text, position)
            if not match:
                raise Refused(f"ORA-00911: {text[position:position + 20]!r}")
            yield match.group(match.lastindex)
            position = match.end()

    def take(self) -> str:
        if not self.tokens:
            raise Refused("ORA-00921: unexpected end of the statement")
        return self.tokens.pop(0)

    def expect(self, words: str) -> None:
        for word in words.split():
            found = self.take()
            if found.upper() != word:
                raise Refused(f"KUP-01005: found {found!r} where {word} belongs")

    def list(self) -> list[tuple[str, str, int]]:
        """`(name TYPE(size), ...)`."""
        entries = []
        self.expect("(")
        while True:
            name, kind = self.take().lower(), self.take()
            self.expect("(")
            entries.append((name, kind, int(self.take())))
            self.expect(")")
            if (separator := self.take()) == ")":
                return entries
            if separator != ",":
                raise Refused(f"KUP-01005: found {separator!r} where a comma belongs")


def table(ddl: str) -> ExternalTable:
    """The table that a CREATE TABLE creates."""
    words = _Ddl(ddl)
    words.expect("CREATE TABLE")
    name = words.take().split(".")[-1].lower()
    columns = [Column(*entry) for entry in words.list()]
    words.expect("ORGANIZATION EXTERNAL ( TYPE ORACLE_LOADER DEFAULT DIRECTORY")
    words.take()
    words.expect("ACCESS PARAMETERS ( RECORDS DELIMITED BY NEWLINE CHARACTERSET US7ASCII SKIP")
    skip = int(words.take())
    words.expect("NOBADFILE NODISCARDFILE NOLOGFILE FIELDS TERMINATED BY")
    delimiter = words.take().strip("'")
    words.expect("MISSING FIELD VALUES ARE NULL")
    fields = words.list()
    words.expect(") LOCATION (")
    location = words.take().strip("'")
    words.expect(") ) REJECT LIMIT 0 NOPARALLEL ;")
    if unknown := [kind for _, kind, _ in fields if kind != "CHAR"]:
        raise Refused(f"KUP-01005: fields of {unknown}")
    if unknown := [column for column in columns if column.type not in ("NUMBER", "VARCHAR2")]:
        raise Refused(f"ORA-30656: columns of {unknown}")
    made = ExternalTable(name, columns, location, delimiter, skip, {name: width for name, _, width in fields})
    if len(made.fields) != len(fields) or len({column.name for column in columns}) != len(columns):
        raise Refused(f"ORA-00957: a name twice in {name}")
    if missing := {column.name for column in columns} - made.fields.keys():
        raise Refused(f"KUP-04043: no field for {missing}")
    return made


def tables(script: str) -> dict[str, ExternalTable]:
    """All external tables of a script, by name."""
    found = [table(ddl) for ddl in re.findall(r"^CREATE TABLE .*?;$", script, re.DOTALL | re.MULTILINE)]
    return {table.name: table for table in found}


def load(script: str, directory: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all external tables of a script over the files in a directory."""
    return {table.name: table.load((directory / table.location).read_bytes()) for table in tables(script).values()}
