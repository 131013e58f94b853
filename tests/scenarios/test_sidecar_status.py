"""`hugepage-sidecar status` on a host with several servers says what smaps says, read by root by hand."""

import ctypes
import os
import platform
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harness import kernel, sidecar, smaps
from harness.next_boot import well
from harness.oracle import Instance, MappedFile, SysV, alert_log, automatic_memory, hugetlb_shm_group
from harness.poll import until
from harness.pool import hugetlbfs
from harness.processes import children, memlock, page_tables
from harness.sidecar import OK, UNKNOWN, USAGE
from harness.smaps import BASE_PAGE, by_page_size, shared_mappings
from harness.units import GB, KB, MB, pages

pytestmark = pytest.mark.any_major

HUGE = 2 * MB
ORACLE = os.path.join("bin", "oracle")
OWNER, DBA = 65534, 1
"""nobody, who owns what is not root's, and the group of setgid programs."""
YEAR = timedelta(days=365)


@pytest.fixture
def told(tmp_path) -> Callable[..., dict[str, Any]]:
    """The row of one instance, by its SID or data directory."""
    def row(name: str | Path, **options: Any) -> dict[str, Any]:
        answer = sidecar.run("status", "--format", "json", "--state-dir", tmp_path, "--service-account", str(OWNER), **options)
        assert answer.stderr == "", answer
        found = [row for row in answer.json()["instances"] if row["name"] == str(name)]
        assert len(found) == 1, answer.stdout
        return found[0]
    return row


def pages_for(instance: Instance, page_size: int = HUGE) -> int:
    """What the SGA takes of a pool if all of it goes there: each segment in whole pages, but those below one page."""
    lengths = [mapping.length for mapping in shared_mappings(instance.pmon)]
    small = min(page_size, max(lengths))
    return sum(pages(length, page_size) for length in lengths if length >= small)


UNKNOWN_SETTING = ("use_large_pages is unknown: neither an alert log of this start nor a parameter file shows it; TRUE, the default, "
                   "is assumed")
"""The note on a stand-in without files."""

LOST_GROUP = "vm.hugetlb_shm_group is not what it was at the start"
"""The note on a stand-in that the group let have huge pages, which is another one by now."""


def agree(row: dict[str, Any], instance: Instance, landed: str, **expected: Any) -> None:
    """The row is what root sees by hand of the instance's processes."""
    sizes = by_page_size(instance.pmon)
    in_huge = sum(size for page_size, size in sizes.items() if page_size > BASE_PAGE)
    needed = pages_for(instance)
    limit = memlock(instance.pmon)
    assert row | {
        "pid": instance.pmon,
        "landed_in": landed,
        "by_page_size": [{"page_size": page_size, "bytes": sizes[page_size]} for page_size in sorted(sizes)],
        "shared_memory": sizes.total(),
        "huge_page_bytes": in_huge,
        "base_page_bytes": sizes.total() - in_huge,
        "pages_needed": needed,
        "pages_held": in_huge // HUGE,
        "processes": 1 + len(instance.servers),
        "page_tables_total": page_tables([instance.pmon, *instance.servers]),
        "memlock": limit,
        "memlock_unlimited": limit is None,
        "oracle_home": str(Path(f"/proc/{instance.pmon}/exe").readlink()).removesuffix(f"/{ORACLE}"),
        "notes": [] if row["use_large_pages"] else [UNKNOWN_SETTING],
        **expected,
    } == row


def test_all_in_huge_pages(oracle, pool, told):
    pool(HUGE, 51)
    instance = oracle.instance("FULL", SysV(32 * MB, HUGE), SysV(66 * MB, HUGE), SysV(HUGE, HUGE), servers=3)
    agree(told("FULL"), instance, "hugetlb", verdict=well(), cause=None, pages_missing=0, page_size=HUGE, restart_outlook="hugetlb")


def test_one_sid_in_two_containers(oracle, pool, tmp_path):
    """Each with its own namespace of System V segments, where both begin with the same numbers."""
    pool(HUGE, 0)
    for servers, size in ((3, 12), (1, 40)):
        oracle.instance("TWICE", SysV(size * MB), servers=servers, own_ipc=True)
    answer = sidecar.run("status", "--format", "json", "--state-dir", tmp_path)
    rows = {row["pid"]: row for row in answer.json()["instances"] if row["name"] == "TWICE"}
    assert len(rows) == 2
    for instance in oracle.instances:
        agree(rows[instance.pmon], instance, "base", cause=rows[instance.pmon]["cause"],
              pages_missing=rows[instance.pmon]["pages_missing"])


def test_what_an_instance_costs(oracle, tmp_path):
    """By strace: each instance as much as the first, whose files of the kernel are few."""
    def opens() -> tuple[int, int]:
        """What is opened of the home, and of the instances' processes."""
        trace = tmp_path / "trace"
        sidecar.run("status", "--state-dir", tmp_path, through=["strace", "-f", "-qq", "-e", "trace=openat", "-o", trace])
        calls = trace.read_text()
        pmons = "|".join(str(instance.pmon) for instance in oracle.instances)
        return calls.count('"dbhome_1"'), len(re.findall(rf'"(?:/proc/)?(?:{pmons})/', calls))

    oracle.instance("ONE", SysV(64 * KB))
    (oracle.home / "dbs").mkdir()
    of_home, of_process = opens()
    for sid in ("TWO", "THREE", "FOUR"):
        oracle.instance(sid, SysV(64 * KB))
    # Whoever opens a file of a process for a reader looks first whose that process is. Where /proc hides processes from the reader
    # (hidepid), this goes through the door once more.
    assert of_home <= 4 and of_process <= 50
    assert opens() == (4 * of_home, 4 * of_process)


@pytest.mark.parametrize("available,cause,missing", [(0, "pool_empty", 22), (5, "pool_too_small", 17)])
def test_all_in_base_pages(oracle, pool, told, available, cause, missing):
    """12, 32 and 2 MB as in the seed, but the last less than a page, which needs none."""
    pool(HUGE, available)
    instance = oracle.instance("EMPTY", SysV(12 * MB), SysV(32 * MB), SysV(HUGE - BASE_PAGE), servers=2)
    if available == 0 and kernel.meminfo()["HugePages_Total"] > 0:
        cause = "pool_too_small"
    agree(told("EMPTY"), instance, "base", cause=cause, pages_missing=missing, page_size=BASE_PAGE)


def test_mixed_as_the_99_percent_instance(oracle, pool, told):
    """The seed's 32768, 4063232 and 2048 kB, a sixteenth of it: one page was missing."""
    pool(HUGE, 125)
    instance = oracle.instance("MIXED", SysV(2 * MB, HUGE), SysV(248 * MB, HUGE), SysV(2 * MB), servers=2)
    row = told("MIXED")
    agree(row, instance, "mixed", verdict="warning", landed_in="mixed", pages_missing=1, page_size=HUGE,
          restart_outlook="mixed")
    assert (row["pages_needed"], row["pages_held"]) == (126, 125)
    assert "250 MB" in row["message"] and "other 2 MB" in row["message"]


def test_a_little_in_base_pages_belongs_there(oracle, pool, told):
    """Since 12.1 Oracle itself expects a few small pages beside the huge ones."""
    pool(HUGE, 20)
    instance = oracle.instance("TEST1", SysV(40 * MB, HUGE), SysV(20 * KB))
    agree(told("TEST1"), instance, "hugetlb", verdict=well(), pages_needed=20, pages_missing=0)


def test_two_sizes_of_huge_pages(oracle, pool, told):
    pool(HUGE, 8)
    pool(GB, 1)
    instance = oracle.instance("BOTH", SysV(GB, GB, touch=False), SysV(16 * MB, HUGE), SysV(4 * MB))
    row = told("BOTH")
    sizes = by_page_size(instance.pmon)
    assert sizes == {BASE_PAGE: 4 * MB, HUGE: 16 * MB, GB: GB}
    assert row["by_page_size"] == [{"page_size": size, "bytes": sizes[size]} for size in (BASE_PAGE, HUGE, GB)]
    assert (row["landed_in"], row["huge_page_bytes"], row["base_page_bytes"]) == ("mixed", GB + 16 * MB, 4 * MB)


def test_a_file_on_hugetlbfs(oracle, pool, told):
    pool(HUGE, 8)
    with hugetlbfs(oracle.directory / "huge", HUGE) as point:
        instance = oracle.instance("FREE", MappedFile(point / "ora_FREE_sga", 16 * MB), servers=1)
        agree(told("FREE"), instance, "hugetlb", verdict=well(), pages_missing=0)
        instance.stop()


def test_automatic_memory_and_the_managed_global_area(oracle, pool, told):
    """Both have files ora_* in /dev/shm; only under AMM they are the SGA."""
    pool(HUGE, 0)
    automatic = oracle.instance("AMM", SysV(BASE_PAGE), *automatic_memory("AMM", 3, 4 * MB), servers=1)
    # PMON of the other has its SGA in segments, and a little of its own in files.
    managed = oracle.instance("MGA", SysV(12 * MB), *automatic_memory("MGA", 1, 2 * MB))
    row = told("AMM")
    agree(row, automatic, "base", cause="memory_target", pages_needed=row["pages_needed"])
    assert "MEMORY_TARGET" in row["message"] and "SGA_TARGET" in row["hint"]
    row = told("MGA")
    assert (row["landed_in"], row["shared_memory"], row["pages_needed"]) == ("base", 12 * MB, 6)
    assert by_page_size(managed.pmon) == {BASE_PAGE: 14 * MB}
    assert row["cause"] != "memory_target"


def test_the_farm_of_the_seed(oracle, pool, told, tmp_path):
    """A pool that is used up by one instance as a whole and another in part, and nothing is left for the third."""
    borrowed = pool(HUGE, 50 + 63)
    full = oracle.instance("FULL", SysV(32 * MB, HUGE), SysV(68 * MB, HUGE), servers=2)
    mixed = oracle.instance("MIXED", SysV(2 * MB, HUGE), SysV(124 * MB, HUGE), SysV(2 * MB), servers=1)
    empty = oracle.instance("EMPTY", SysV(12 * MB), SysV(32 * MB), SysV(2 * MB))
    agree(told("FULL"), full, "hugetlb", verdict=well(), pages_missing=0)
    agree(told("MIXED"), mixed, "mixed", pages_missing=1)
    agree(told("EMPTY"), empty, "base", pages_missing=23)
    answer = sidecar.run("status", "--format", "json", "--state-dir", tmp_path).json()
    host, = (row for row in answer["pools"] if row["page_size"] == HUGE and row["node"] is None)
    numbers = borrowed.numbers()
    assert (host["nr_hugepages"], host["available_hugepages"]) == (numbers.nr, 0)
    assert host["held_by_instances"] == 113 and host["held_by_others"] == numbers.held - 113
    assert host["recommended_nr_hugepages"] == numbers.nr + 1 + 23
    assert "1 of 3 instances is in huge pages" in answer["message"]


def test_beside_postgresql(oracle, pool, new_cluster, told):
    """Each server gets what it is, whoever its neighbours are."""
    huge = new_cluster(shared_buffers="64MB")
    needed = huge.pages_needed(HUGE)
    pool(HUGE, needed + 16)
    pool(GB, 1)
    huge.start()
    instance = oracle.instance("ORCL", SysV(32 * MB, HUGE), servers=1)
    base = new_cluster(shared_buffers="48MB", huge_pages=False).start()
    sysv = new_cluster(shared_buffers="32MB", shared_memory_type="sysv").start()
    gigantic = new_cluster(shared_buffers="32MB", huge_page_size="1GB").start()
    asm = oracle.instance("+ASM", SysV(2 * MB), kind="asm")
    agree(told("ORCL"), instance, "hugetlb", kind="oracle", pages_missing=0)
    agree(told("+ASM"), asm, "base", kind="asm")
    for server, landed, page_size, cause in ((huge, "hugetlb", HUGE, None), (base, "base", BASE_PAGE, "disabled"),
                                             (sysv, "base", BASE_PAGE, "sysv_shared_memory"), (gigantic, "hugetlb", GB, None)):
        mapping = smaps.main_mapping(server.postmaster)
        assert mapping.page_size == page_size
        row = told(server.data)
        assert {"kind": "postgresql", "landed_in": landed, "page_size": page_size, "cause": cause,
                "shared_memory": mapping.length, "version": str(server.install.major),
                "by_page_size": [{"page_size": page_size, "bytes": mapping.length}],
                "huge_pages": "off" if server is base else "try",
                "memlock": memlock(server.postmaster), "notes": []}.items() <= row.items()
        # Its processes come and go.
        until("the same page tables by hand", lambda: page_tables_agree(server.postmaster, told(server.data)))


def page_tables_agree(postmaster: int, row: dict[str, Any]) -> bool:
    processes = [postmaster, *children(postmaster)]
    return (row["processes"], row["page_tables_total"]) == (len(processes), page_tables(processes))


def test_without_privilege(oracle, pool, told, tmp_path):
    """Of setgid programs even their owner sees little: what is certain is told, the rest is unknown, and why."""
    pool(HUGE, 16)
    with hugetlb_shm_group(DBA):
        instance = oracle.instance("SHUT", SysV(32 * MB, HUGE), user=OWNER, setgid=DBA, memlock=6 * MB, servers=1)
    base = oracle.instance("BASE", SysV(8 * MB), user=OWNER, setgid=DBA)
    own = oracle.instance("OPEN", SysV(4 * MB), user=OWNER)
    agree(told("SHUT"), instance, "hugetlb", notes=[UNKNOWN_SETTING, LOST_GROUP])
    tmp_path.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    row = told("SHUT", user="nobody")
    assert {"landed_in": "unknown", "verdict": "notice", "shared_memory": None, "huge_page_bytes": None, "pages_needed": None,
            "pages_held": None, "pages_missing": None, "by_page_size": [], "processes": 2, "memlock": 6 * MB,
            "page_tables_total": page_tables([instance.pmon, *instance.servers]),
            "oracle_home": None}.items() <= row.items()
    assert any(f"/proc/{instance.pmon}/maps" in note and "run this on the host as root" in note for note in row["notes"])
    row = told("BASE", user="nobody")
    assert (row["landed_in"], row["memlock"]) == ("unknown", memlock(base.pmon))
    agree(told("OPEN", user="nobody"), own, "base")
    assert sidecar.run("check", "--state-dir", tmp_path, "--service-account", str(OWNER), user="nobody").status == UNKNOWN
    assert sidecar.run("check", "--instance", "OPEN", "--state-dir", tmp_path, "--service-account", str(OWNER), user="nobody").status == OK


def test_the_table_fits_80_columns_without_colour(oracle, pool):
    pool(HUGE, 8)
    oracle.instance("A_LONG_SID_NUMBER_1", SysV(16 * MB, HUGE), servers=1)
    oracle.instance("B", SysV(1 * MB))
    answer = sidecar.run("status")
    assert "\x1b" not in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80
    assert sidecar.run("status", "--format", "csv").csv()[0]["landed_in"] in ("hugetlb", "base")
    assert sidecar.run("status", "--format", "picture").status == USAGE


class TestAlertLogs:
    """What the log says counts only if it says it of this very start."""

    SGA = [SysV(30 * MB, HUGE), SysV(2 * MB)]

    @pytest.mark.parametrize("form", ["11.2", "19"])
    @pytest.mark.parametrize("age", [timedelta(), YEAR], ids=["of-this-start", "of-an-old-one"])
    def test_the_setting_of_the_start(self, oracle, pool, told, form, age):
        pool(HUGE, 15)
        instance = oracle.instance("TEST1", *self.SGA)
        write(instance, form, age=age, setting="ONLY")
        live = not age
        row = told("TEST1")
        agree(row, instance, "mixed", use_large_pages="ONLY" if live else None)
        assert (row["version"] or "").split(".")[0] == ("" if not live else "11" if form == "11.2" else "19")

    def test_who_may_see_nothing_else(self, oracle, pool, told, tmp_path):
        """The log tells what was asked for, not where it is."""
        pool(HUGE, 15)
        with hugetlb_shm_group(DBA):
            instance = oracle.instance("SHUT", *self.SGA, user=OWNER, setgid=DBA)
        write(instance, "19", age=timedelta())
        row = told("SHUT", user="nobody", through=with_oratab(tmp_path, f"SHUT:{instance.home}:N\n"))
        assert (row["landed_in"], row["shared_memory"]) == ("unknown", None)
        assert row["use_large_pages"] == "TRUE"

    def test_the_last_block_counts(self, oracle, pool, told):
        """An old start, the one that runs, and then lines that are no start."""
        pool(HUGE, 15)
        instance = oracle.instance("TEST1", *self.SGA)
        old = alert_log.of_19(instance.pmon, 16, 16, 3, setting="ONLY", age=YEAR)
        live = alert_log.of_19(instance.pmon, 16, 15, 512, setting="AUTO", version="19.3.0.0.0")
        instance.alert_log.write_text(old + live + "Thread 1 advanced to log sequence 7\n" * 1000)
        assert told("TEST1")["use_large_pages"] == "AUTO"
        instance.alert_log.write_text(live + old)
        assert told("TEST1")["version"] is None


def write(instance: Instance, form: str, age: timedelta, setting: str = "TRUE") -> None:
    """The log of a start that got 15 huge pages and 2 MB of small ones."""
    if form == "11.2":
        text = alert_log.of_11_2(instance.pmon, 32 * MB, 30 * MB, setting=setting, age=age)
    else:
        text = alert_log.of_19(instance.pmon, 16, 15, pages(2 * MB, BASE_PAGE), setting=setting, age=age)
    instance.alert_log.write_text(text)


def with_oratab(directory: Path, text: str) -> list[str | Path]:
    """A command that runs another where oratab has this text; the host keeps its own."""
    oratab = directory / "oratab"
    oratab.write_text(text)
    script = 'mount -t tmpfs none /var/opt && mkdir /var/opt/oracle && cp "$0" /var/opt/oracle/oratab && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, oratab]


CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_BIND, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 0x1000, 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def contained(root: Path | None, mounts: list[tuple[str, Path, str]]) -> Callable[[], None]:
    """Enters a mount namespace of its own with these mounts (type, place, options), and another root directory."""
    libc = ctypes.CDLL(None, use_errno=True)
    pivot_root = PIVOT_ROOT[platform.machine()]

    def call(function: Any, *arguments: Any) -> None:
        if function(*arguments) != 0:
            raise OSError(ctypes.get_errno(), function.__name__)

    def enter() -> None:
        call(libc.unshare, CLONE_NEWNS)
        call(libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        if root is not None:
            call(libc.mount, b"/", bytes(root), None, MS_BIND | MS_REC, None)
        for kind, place, options in mounts:
            call(libc.mount, b"none", bytes(place), kind.encode(), 0, options.encode())
        if root is not None:
            # Without a place for the old root: it lies under the new one, and goes (pivot_root(2)).
            os.chdir(root)
            call(libc.syscall, pivot_root, b".", b".")
            call(libc.umount2, b".", MNT_DETACH)
            os.chdir("/")
    return enter


@pytest.mark.parametrize("own_root", [False, True], ids=["own-mounts", "own-root"])
def test_in_a_container(oracle, pool, told, own_root):
    """Its hugetlbfs and its files are in mounts that only it has."""
    pool(HUGE, 8)
    inside = oracle.directory / "huge"
    inside.mkdir()
    root = oracle.directory / "root" if own_root else None
    if root:
        root.mkdir()
    seen = Path(f"{root or ''}{oracle.base}")
    seen_huge = Path(f"{root or ''}{inside}")
    enter = contained(root, [("hugetlbfs", seen_huge, "pagesize=2M"), ("tmpfs", seen / "diag", "")])
    (oracle.base / "diag").mkdir()
    instance = oracle.instance("POD1", MappedFile(inside / "ora_POD1_sga", 16 * MB), prepare=enter)
    assert not (inside / "ora_POD1_sga").exists()
    trace = Path(f"/proc/{instance.pmon}/root{oracle.base}/diag/rdbms/pod1/POD1/trace")
    trace.mkdir(parents=True)
    (trace / "alert_POD1.log").write_text(alert_log.of_19(instance.pmon, 8, 8, 3, setting="ONLY"))
    row = told("POD1")
    agree(row, instance, "hugetlb", use_large_pages="ONLY", version="19.24.0.0.0")
    instance.stop()
