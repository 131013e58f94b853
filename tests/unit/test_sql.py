"""The extension's SQL scripts: what src/ has, what the library answers to, and what was released."""

import re
import shutil
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest
from machine import REPOSITORY

COLUMNS = "crates/hugepage-assess/columns.txt"
EXPORTED = re.compile(r"#\[pg_extern\(sql = false\)\]\s+fn (\w+)\((.*?)\)\s*(?:->|\{)", re.DOTALL)
TYPES = {"&str": "text", "&[u8]": "text", "i64": "bigint", "i32": "integer", "bool": "boolean"}
ROW = re.compile(r"\brow_of! \{ \w+(?:, \w+)*;(.*?)\s\}", re.DOTALL)
VALUE = re.compile(r"(?:^ *|(?<= ))(\w+): ((?:[^,()]|\((?:[^()]|\([^()]*\))*\))*)", re.MULTILINE)
SHARED = re.compile(r"\bfields\(")
"""The columns with their values in a file of src/views, and others that it takes from a crate; below, those whose value is named as
another column."""
COMPUTED = {("status", "shared_buffers_in_huge_pages"), ("status", "transparent_hugepage"), ("segments", "size"), ("segments", "reserved"),
            ("page_tables", "share_of_memory")}


def loaded() -> ModuleType:
    loader = SourceFileLoader("scripts_sql", str(REPOSITORY / "scripts/sql"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


sql = loaded()
MADE = (REPOSITORY / f"sql/pg_hugepages--{sql.version()}.sql").read_text()
NOW = sql.functions(MADE)


def exported() -> dict[str, tuple[bool, list[str]]]:
    """Of each function of the library: whether it returns rows, and the types of its arguments."""
    found = {}
    for path in (REPOSITORY / "src").glob("**/*.rs"):
        for name, listed in EXPORTED.findall(path.read_text()):
            types = [argument.split(":", 1)[1].strip() for argument in listed.split(",") if argument.strip()]
            found[name] = (types[:1] == ["pg_sys::FunctionCallInfo"], [kind for kind in types if not kind.startswith("pg_sys::")])
    return found


@pytest.fixture
def copy(tmp_path) -> ModuleType:
    """scripts/sql with a repository of its own."""
    for name in ("Cargo.toml", "src/library.sql", "src/views", "sql", "docs/columns.md", COLUMNS):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy)(REPOSITORY / name, tmp_path / name)
    copied = loaded()
    copied.ROOT = tmp_path
    return copied


def release(copy: ModuleType, version: str) -> None:
    """Make the present script that of a released version."""
    (copy.ROOT / f"sql/pg_hugepages--{version}.sql").write_text(MADE)
    with open(copy.ROOT / "sql/released.sha256", "a") as released:
        released.write(f"{copy.hashlib.sha256(MADE.encode()).hexdigest()}  pg_hugepages--{version}.sql\n")
    for name, text in copy.scripts().items():
        (copy.ROOT / "sql" / name).write_text(text)


def test_the_scripts_are_what_the_sources_have():
    assert sql.wrong() == []


def test_a_change_of_either_side_is_found(copy):
    release(copy, "0.0.8")
    for name in ("src/views/pools.sql", f"sql/pg_hugepages--{copy.version()}.sql", "sql/pg_hugepages--0.0.8.sql"):
        path = copy.ROOT / name
        before = path.read_text()
        path.write_text(before.replace("STRICT", "", 1))
        assert before != path.read_text() and copy.wrong(), name
        path.write_text(before)
    assert copy.wrong() == []
    (copy.ROOT / "sql/pg_hugepages--0.0.7.sql").touch()
    assert len(copy.wrong()) == 1


def test_what_is_released_is_not_written_again(copy, monkeypatch, capsys):
    release(copy, copy.version())
    script = f"pg_hugepages--{copy.version()}.sql"
    monkeypatch.setattr("sys.argv", ["sql"])
    another = copy.ROOT / "src/views/pools.sql"
    another.write_text(another.read_text() + "-- another\n")
    assert copy.main() == 1 and "is released" in capsys.readouterr().err
    assert (copy.ROOT / "sql" / script).read_text() == MADE


def test_an_update_keeps_what_is_there(copy):
    """Nothing is dropped or granted again; what is new is made as by CREATE EXTENSION."""
    release(copy, "0.0.8")
    path = copy.ROOT / COLUMNS
    path.write_text(path.read_text().replace("\n[pools]\n", "swap_free bytes free swap of the host\n\n[pools]\n"))
    update = copy.scripts()[f"pg_hugepages--0.0.8--{copy.version()}.sql"]
    assert "ALTER TYPE hugepage_status_row ADD ATTRIBUTE swap_free bigint;" in update
    assert "COMMENT ON COLUMN hugepage_status.swap_free IS 'free swap of the host, in bytes';" in update
    made_anew = set(re.findall(r"^(?:DROP|CREATE) (?!OR REPLACE)\w+ (\w+)", update, re.MULTILINE))
    assert made_anew == {"hugepage_refuse_overloads"}
    assert not re.search(r"^(?:GRANT|REVOKE)", update, re.MULTILINE)


def test_what_is_released_is_not_removed(copy):
    """Nor is a column taken away, or put between others."""
    release(copy, "0.0.8")
    path = copy.ROOT / COLUMNS
    before = path.read_text()
    for changed in (before.replace("\nis_default flag whether mappings that ask for no size get this size", "", 1).replace("pools.is_default\n", ""),
                    before.replace("\n[pools]\n", "\n[pools]\nmore count another\n")):
        assert changed != before
        path.write_text(changed)
        with pytest.raises(SystemExit, match="columns of the last release have changed"):
            copy.scripts()
    path.write_text(before)
    (copy.ROOT / "src/views/host.sql").unlink()
    with pytest.raises(SystemExit, match="nothing that is released is removed"):
        copy.scripts()


def test_a_name_that_is_not_declared_fails_before_anything_runs(copy):
    path = copy.ROOT / COLUMNS
    path.write_text(path.read_text().replace("\n[pools]\n", "swap_free\n\n[pools]\n"))
    with pytest.raises(SystemExit, match="no section above declares swap_free"):
        copy.scripts()


def test_each_function_is_one_of_the_library_with_the_same_arguments():
    library = exported()
    assert {function.symbol for function in NOW} == {f"{name}_wrapper" for name in library} - {"hugepage_refuse_overloads_wrapper"}
    for function in NOW:
        returns_rows, types = library[function.symbol.removesuffix("_wrapper")]
        assert returns_rows == bool(function.columns), function.name
        nullable = [kind.startswith("Option<") for kind in types]
        assert [TYPES[kind.removeprefix("Option<").removesuffix(">")] for kind in types] == \
            [argument.split(" ", 1)[1] for argument in function.arguments], function.name
        strict = re.search(rf"^CREATE FUNCTION {function.name}\b[^;]*\bSTRICT\b", MADE, re.MULTILINE) is not None
        assert not types or nullable == [not strict] * len(types), f"{function.name}: STRICT, or Option<>"


def source_of(view: str) -> str:
    """The Rust of a view's function, with what stands below it up to the next one."""
    files = (REPOSITORY / "src/views").glob("*.rs")
    functions = [function for file in files for function in file.read_text().split("#[pg_extern(sql = false)]\n")]
    [found] = [function for function in functions if function.startswith(f"fn hugepage_{view}(")]
    return found


@pytest.mark.parametrize("path", sql.views(), ids=lambda path: path.stem)
def test_a_row_has_the_columns_that_are_declared(path):
    """What a value is taken from is named as its column, as far as it has the name of one."""
    declared, source = [column.name for column in sql.declared(path.stem)], source_of(path.stem)
    values = [value for row in ROW.findall(source) for value in VALUE.findall(row)]
    names = [name for name, _ in values]
    assert len({*names}) == len(names) and {*names} <= {*declared}
    assert names == declared or SHARED.search(source)
    for column, value in values:
        named = set(re.findall(r"\w+", value)) & set(declared)
        assert not named or column.removeprefix("was_") in named or (path.stem, column) in COMPUTED, f"{column}: {value}"


def test_no_function_of_a_user_can_stand_beside_one():
    names = set(re.findall(r"'(hugepage_\w+)'", re.search(r"ARRAY\[(.*?)\]", MADE, re.DOTALL)[1]))
    assert names == {function.name for function in NOW}


def unserved(old: list, now: list) -> list[str]:
    """What a library with the functions of `now` does not give those of `old`: a released symbol stays; its arguments stay, and
    its columns, with new ones behind them."""
    by_symbol = {function.symbol: function for function in now}
    found = []
    for function in old:
        new = by_symbol.get(function.symbol)
        if not new:
            found.append(f"{function.symbol} is gone")
        elif (function.arguments, function.value) != (new.arguments, new.value) or function.columns != new.columns[:len(function.columns)]:
            found.append(f"{function.symbol} has another signature now")
    return found


def test_the_library_serves_what_was_released():
    for version in sql.releases():
        assert unserved(sql.functions((REPOSITORY / f"sql/pg_hugepages--{version}.sql").read_text()), NOW) == [], version
    # Each kind of change that would break a released version is seen.
    [status] = [function for function in NOW if function.name == "hugepage_status"]
    more = status._replace(columns=[*status.columns, "more text"])
    assert unserved([status], [more]) == []
    for changed in ([], [status._replace(columns=status.columns[1:])], [status._replace(arguments=["more text"])]):
        assert len(unserved([status], changed)) == 1
