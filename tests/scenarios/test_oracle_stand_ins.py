"""The stand-ins for Oracle are what they claim to be: smaps, read by hand as root, shows each kind of memory."""

import re
from pathlib import Path

import pytest

from harness.kernel import sysv_segments
from harness.oracle import MappedFile, StandInFailed, SysV, automatic_memory, hugetlb_shm_group
from harness.pool import hugetlbfs
from harness.processes import CommandFailed, alive, plain_proc, run, status
from harness.smaps import BASE_PAGE, by_page_size, shared_mappings
from harness.units import KB, MB, pages

pytestmark = pytest.mark.any_major

HUGE = 2 * MB
NOBODY, OTHER_GROUP = 65534, 1


def cmdline(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_in_base_pages(oracle):
    instance = oracle.instance("TEST1", SysV(12 * MB), SysV(2 * MB, key=0x7E57_0001), servers=2)
    assert cmdline(instance.pmon) == "ora_pmon_TEST1\0"
    assert status(instance.pmon)["Name"] == "ora_pmon_TEST1"
    assert Path(f"/proc/{instance.pmon}/exe").readlink() == instance.home / "bin" / "oracle"
    for pid in (instance.pmon, *instance.servers):
        assert by_page_size(pid) == {BASE_PAGE: 14 * MB}
        names = {mapping.inode: mapping.path for mapping in shared_mappings(pid)}
        assert names == dict(zip(instance.shmids, ("/SYSV00000000", "/SYSV7e570001")))
    assert [cmdline(pid) for pid in instance.servers] == ["oracleTEST1\0(LOCAL=NO)\0"] * 2


def test_in_huge_pages(oracle, pool):
    """Reserved from the first moment, taken as they are touched."""
    borrowed = pool(HUGE, pages(33 * MB, HUGE))
    held = borrowed.numbers().held
    instance = oracle.instance("my_db", SysV(32 * MB, HUGE), SysV(MB, HUGE, touch=False))
    # A segment takes whole pages, though the kernel remembers its size to the byte.
    assert by_page_size(instance.pmon) == {HUGE: 34 * MB}
    assert [sysv_segments()[shmid] for shmid in instance.shmids] == [32 * MB, MB]
    numbers = borrowed.numbers()
    assert (numbers.held - held, numbers.available, numbers.resv) == (17, 0, 1)


def test_mixed_as_a_99_percent_instance(oracle, pool):
    """Two segments in huge pages and one small one: 4000 of 4002 MB, a hundredth of it."""
    pool(HUGE, 20)
    instance = oracle.instance("TEST1", SysV(8 * MB, HUGE), SysV(32 * MB, HUGE), SysV(20 * KB), servers=1)
    for pid in (instance.pmon, *instance.servers):
        assert by_page_size(pid) == {HUGE: 40 * MB, BASE_PAGE: 20 * KB}


def test_no_pool_no_segment(oracle, pool):
    pool(HUGE, 2)
    with pytest.raises(StandInFailed, match="shmget: Cannot allocate memory"):
        oracle.instance("TEST1", SysV(2 * MB), SysV(32 * MB, HUGE))
    assert len(oracle.instances[0].shmids) == 1


def test_automatic_memory(oracle):
    files = automatic_memory("TEST1", 3, 4 * MB)
    instance = oracle.instance("TEST1", SysV(BASE_PAGE), *files, servers=1)
    for pid in (instance.pmon, *instance.servers):
        assert {mapping.path for mapping in shared_mappings(pid)} == {"/SYSV00000000", *(str(file.path) for file in files)}
        assert by_page_size(pid) == {BASE_PAGE: 12 * MB + BASE_PAGE}


def test_a_file_on_hugetlbfs(oracle, pool):
    pool(HUGE, 8)
    with hugetlbfs(oracle.directory / "huge", HUGE) as point:
        file = MappedFile(point / "ora_TEST1_sga", 16 * MB)
        instance = oracle.instance("TEST1", file, servers=1)
        for pid in (instance.pmon, *instance.servers):
            [mapping] = shared_mappings(pid)
            assert (mapping.path, mapping.length, mapping.page_size) == (str(file.path), 16 * MB, HUGE)
        instance.stop()
        assert not file.path.exists()


def readable(pid: int, name: str) -> bool:
    """Whether nobody may read a file of the process."""
    try:
        run(*plain_proc(), "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "cat", f"/proc/{pid}/{name}")
    except CommandFailed:
        return False
    return True


def test_a_setgid_program_shows_nothing_to_its_own_user(oracle, pool):
    """maps and smaps are refused to the same uid, while status, limits and cmdline are not."""
    pool(HUGE, 4)
    with hugetlb_shm_group(OTHER_GROUP):
        closed = oracle.instance("SHUT", SysV(8 * MB, HUGE), user=NOBODY, setgid=OTHER_GROUP, memlock=6 * MB)
    plain = oracle.instance("OPEN", SysV(2 * MB), user=NOBODY)
    assert closed.home != plain.home
    for name in ("status", "limits", "cmdline"):
        assert readable(closed.pmon, name)
    for name in ("maps", "smaps", "environ"):
        assert readable(plain.pmon, name) and not readable(closed.pmon, name)
    assert status(closed.pmon)["Uid"].split()[0] == str(NOBODY)
    limits = Path(f"/proc/{closed.pmon}/limits").read_text()
    assert re.search(rf"^Max locked memory +{6 * MB} +{6 * MB} ", limits, re.MULTILINE)
    assert by_page_size(closed.pmon) == {HUGE: 8 * MB}


def test_huge_pages_are_refused_to_other_groups(oracle, pool):
    pool(HUGE, 4)
    with hugetlb_shm_group(OTHER_GROUP), pytest.raises(StandInFailed, match="shmget: Operation not permitted"):
        oracle.instance("TEST1", SysV(8 * MB, HUGE), user=NOBODY, memlock=0)


def test_other_kinds_side_by_side(oracle, pool):
    pool(HUGE, 5)
    asm = oracle.instance("+ASM1", SysV(2 * MB, HUGE), kind="asm")
    repository = oracle.instance("-MGMTDB", SysV(3 * MB), kind="mdb")
    database = oracle.instance("TEST1", SysV(8 * MB, HUGE))
    assert [cmdline(instance.pmon) for instance in (asm, repository, database)] == [
        "asm_pmon_+ASM1\0", "mdb_pmon_-MGMTDB\0", "ora_pmon_TEST1\0"]
    database.server("ora_dbw0_TEST1", touch=False)
    assert [by_page_size(instance.pmon) for instance in (asm, repository, database)] == [
        {HUGE: 2 * MB}, {BASE_PAGE: 3 * MB}, {HUGE: 8 * MB}]
    assert by_page_size(database.servers[0]) == {HUGE: 8 * MB}


def test_what_a_killed_instance_leaves_is_taken_away(oracle, pool):
    borrowed = pool(HUGE, 4)
    available = borrowed.numbers().available
    instance = oracle.instance("TEST1", SysV(8 * MB, HUGE), *automatic_memory("TEST1", 1, MB), servers=2)
    pids = [instance.pmon, *instance.servers]
    instance.kill()
    assert not any(map(alive, pids))
    assert instance.shmids[0] in sysv_segments() and instance.files[0].path.exists()
    instance.stop()
    assert instance.shmids[0] not in sysv_segments() and not instance.files[0].path.exists()
    assert borrowed.numbers().available == available


def test_many(oracle):
    """Fifty instances are a matter of a second, so that scenarios can have as many as a farm."""
    for number in range(50):
        oracle.instance(f"farm{number}", SysV(64 * KB), servers=3)
    pids = [pid for instance in oracle.instances for pid in (instance.pmon, *instance.servers)]
    assert len(pids) == 200 and all(map(alive, pids))
