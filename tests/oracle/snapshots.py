"""Snapshots for the writer: a realistic one, and random ones."""

import re
from typing import Any

from harness.oracle_files import script
from harness.oracle_loader import ExternalTable, tables
from hypothesis import strategies as st

TABLES = tables(script("install-sql"))
COMMON = ("format_version", "snapshot_id", "snapshot_utc", "host_name")
COUNTS = ("pool_count", "instance_count", "finding_count")
PROSE = ("message", "notes", "regression_detail", "last_start_errors", "reason")
COMMANDS = ("command", "instance_host")
"""Columns that are complete or NULL."""
INSTRUCTIONS = ("hint",)
"""Columns that are complete, or say where the text is."""
ELSEWHERE = 'Run "hugepage-sidecar status" on this host: what to do does not fit here.'
MEMBERS = {"hosts": "hp_host", "pools": "hp_pool", "instances": "hp_instance", "findings": "hp_finding"}
"""The file of each member of the JSON, which has the name of the function of the package."""
MAX_RECORD_BYTES = 999

HOST: dict[str, Any] = {
    "host_name": "db1.example.com",
    "hosts": [{"interval_seconds": 60, "sidecar_version": "0.1.0", "memory_total": 64 << 30, "verdict": "warning"}],
    "pools": [{"page_size": 2 << 20, "is_default": True, "nr_hugepages": 9220, "free_hugepages": 100, "resv_hugepages": 0,
               "available_hugepages": 100},
              {"page_size": 2 << 20, "node": 0, "is_default": True, "nr_hugepages": 9220, "free_hugepages": 100}],
    "instances": [
        {"kind": "oracle", "sid": "ORCL", "verdict": "ok", "message": "The SGA is in huge pages.", "pid": 4711,
         "sga_in_huge_pages": True, "landed_in": "hugetlb", "page_size": 2 << 20, "shared_memory": 18 << 30,
         "started_utc": 1_795_000_000, "home": "/u01/app/oracle/product/19.0.0/dbhome_1"},
        {"kind": "asm", "sid": "+ASM1", "verdict": "notice", "message": "The SGA is in 4 kB pages.", "landed_in": "base",
         "hint": "Set use_large_pages = TRUE.", "page_size": 4096, "started_utc": 1_794_000_000},
        {"kind": "postgresql", "sid": "5432", "verdict": "ok", "landed_in": "hugetlb", "page_size": 2 << 20,
         "home": "/var/lib/postgresql/15/main", "started_utc": 1_794_500_000}],
    "findings": [{"priority": 1, "severity": "notice", "area": "oracle", "setting": "use_large_pages", "sid": "+ASM1",
                  "kind": "asm", "recommended": "TRUE", "reason": "The SGA is in 4 kB pages."},
                 {"priority": 2, "severity": "notice", "area": "kernel", "setting": "vm.nr_hugepages",
                  "command": "sysctl -w vm.nr_hugepages=9500", "reason": "For all instances."}],
}

HOSTILE = ["|", "a|b", "\n", "ORCL\n", "\r\n", "\t", "\0", "\x7f", " ", "  leading", "trailing  ", '"quoted"', "it's", "\\n", "ä",
           "日本", "\u2028", "\u00a0", "💥", "'; DROP USER sys CASCADE; --", "&define", "x" * 1200, "word " * 300, "é" * 500,
           "Y", "NULL", "-1", "/"]
texts = st.one_of(st.text(max_size=40), st.text(alphabet="ab |\n\té0", max_size=1200), st.sampled_from(HOSTILE))
numbers = st.one_of(st.integers(0, 2 ** 64 - 1), st.sampled_from([0, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1]))
moments = st.integers(0, 2 ** 36)


def _value(name: str, type: str, size: int) -> st.SearchStrategy:
    if name == "interval_seconds":
        # The package asks the clock whether a verdict is old.
        return st.integers(60, 2 ** 36)
    if type == "NUMBER":
        return numbers
    if name.endswith("_utc"):
        return moments
    return st.booleans() if size == 1 else texts


def _record(table: ExternalTable) -> st.SearchStrategy:
    own = [column for column in table.columns if column.name not in COMMON + COUNTS]
    return st.fixed_dictionaries({}, optional={
        column.name: st.none() | _value(column.name, column.type, column.size) for column in own})


snapshots = st.fixed_dictionaries({
    "host_name": texts,
    **{member: st.lists(_record(TABLES[file]), min_size=int(member == "hosts"), max_size=1 if member == "hosts" else 3)
       for member, file in MEMBERS.items()},
})


def sanitised(text: str) -> str:
    """The sanitised text, as docs/architecture.md describes it."""
    text = re.sub(r"[\x00-\x1f\x7f\x80-\x9f]", " ", text)
    return re.sub(r"[^\x20-\x7e]|\|", "?", text).strip(" ")
