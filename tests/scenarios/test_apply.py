"""hugepage-sidecar apply: the pool is what was asked for, or what it was; never anything between."""

import fcntl
import os
import pty
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import sidecar
from harness.kernel import meminfo, pool_numbers
from harness.next_boot import has_systemd, is_container
from harness.poll import until
from harness.pool import Pool, PoolError
from harness.processes import run
from harness.sidecar import OK, UNKNOWN, USAGE, WARNING
from harness.smaps import main_mapping
from harness.units import GB, MB

pytestmark = pytest.mark.any_major

SYSCTL_FILE = Path("/etc/sysctl.d/90-postgresql-hugepages.conf")
TMPFILES_FILE = Path("/etc/tmpfiles.d/postgresql-hugepages.conf")
LOCK_FILE = Path("/run/hugepage-sidecar/apply.lock")


@pytest.fixture
def small(pool) -> Pool:
    """A pool of 2 MB pages, of which 10 are free; the test may change it."""
    return pool(2 * MB, 10)


@pytest.fixture
def settings(root) -> Iterator[None]:
    """Files that say what the next boot does are put back after the test."""
    found = {file: file.read_bytes() if file.exists() else None for file in (SYSCTL_FILE, TMPFILES_FILE)}
    try:
        yield
    finally:
        for file, content in found.items():
            if content is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(content)


def apply(*arguments: object, **how: object) -> sidecar.Answer:
    """Run apply, which has no terminal here to ask on."""
    return sidecar.run("apply", "--yes", *arguments, **how)


def nr_file(pool: Pool) -> Path:
    return pool.directory / "nr_hugepages"


@contextmanager
def slow(pool: Pool, *arguments: object, tampering: str = "delay_enter=200000") -> Iterator[subprocess.Popen]:
    """Run apply under strace, which lets every write into the pool take a fifth of a second, or tampers otherwise."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(nr_file(pool)), "-e", "trace=write",
               "-e", f"inject=write:{tampering}", *sidecar.command("apply", "--yes", *arguments)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def nothing_given(after: int) -> str:
    """For strace: after so many writes into the pool two (one, and one more after compaction) do nothing and are told
    to be done. Every number that is written must have three digits."""
    return f"retval=3:when={after + 1}..{after + 2}"


def program(strace: subprocess.Popen) -> int:
    """The pid of the program, once strace, which first tries out some processes of its own, runs it."""
    def found() -> list[int]:
        children = Path(f"/proc/{strace.pid}/task/{strace.pid}/children").read_text().split()
        return [int(pid) for pid in children if Path(f"/proc/{pid}/exe").resolve() == sidecar.binary().resolve()]

    return until("strace to start the program", found)[0]


def end(process: subprocess.Popen) -> sidecar.Answer:
    stdout, stderr = process.communicate(timeout=60)
    return sidecar.Answer(process.returncode, stdout, stderr)


def test_grows_and_shrinks(small):
    held = small.numbers().held
    for wanted in (held + 500, held + 30, held + 30, held):
        answer = apply("--pages", wanted)
        assert (answer.status, answer.stderr) == (OK, "")
        assert small.persistent() == wanted == pool_numbers(2 * MB).nr
        assert f"has {wanted} pages of 2 MB" in answer.stdout


def test_other_sizes(pool):
    gigantic = pool(GB, 1)    # NoGigabyte where none is to be had
    held = gigantic.numbers().held
    gigantic.resize(held)
    answer = apply("--page-size", "1GB", "--pages", held + 1)
    assert (answer.status, answer.stderr) == (OK, "") and gigantic.persistent() == held + 1
    assert apply("--page-size", "1048576kB", "--pages", held).status == OK
    assert gigantic.persistent() == held
    unknown = apply("--page-size", "4MB", "--pages", 1)
    assert unknown.status == UNKNOWN and "it supports 2MB, 1GB" in unknown.stderr


def test_dry_run_changes_nothing(small, settings):
    before, content = small.numbers(), SYSCTL_FILE.exists()
    answer = apply("--pages", before.nr + 100, "--persist", "--dry-run")
    assert answer.status == OK and f"would have {before.nr + 100} pages" in answer.stdout
    assert f"vm.nr_hugepages = {before.nr + 100}" in answer.stdout
    assert (small.numbers(), SYSCTL_FILE.exists()) == (before, content)
    refused = apply("--pages", 10**9, "--dry-run")
    assert refused.status == UNKNOWN and small.numbers() == before


def answered(text: str, *arguments: object) -> sidecar.Answer:
    """What apply does for somebody who types the text at a terminal."""
    controller, terminal = pty.openpty()
    try:
        os.write(controller, text.encode())
        done = subprocess.run(sidecar.command("apply", *arguments), stdin=terminal, capture_output=True, text=True, timeout=60)
        return sidecar.Answer(done.returncode, done.stdout, done.stderr)
    finally:
        os.close(terminal)
        os.close(controller)


def test_nothing_changes_without_consent(small, settings):
    """A terminal is asked, unless there is nothing to do; where there is none, --yes is needed, also for --recommended."""
    before, content = small.numbers(), SYSCTL_FILE.exists()
    wanted = before.nr + 30
    for arguments in (["--pages", wanted], ["--pages", wanted, "--persist"], ["--recommended"]):
        refused = sidecar.run("apply", *arguments)
        assert refused.status == USAGE and "add --yes" in refused.stderr
    for answer in ("\n", "n\n", "yes, no\n"):
        refused = answered(answer, "--pages", wanted, "--persist")
        assert refused.status == UNKNOWN and "[y/N]" in refused.stderr and "nothing was changed" in refused.stderr
        assert f"would have {wanted} pages" in refused.stdout and f"vm.nr_hugepages = {wanted}" in refused.stdout
    assert (small.numbers(), SYSCTL_FILE.exists()) == (before, content)
    done = answered("y\n", "--pages", wanted)
    assert done.status == OK and small.persistent() == wanted
    same = answered("", "--pages", wanted)
    assert same.status == OK and "[y/N]" not in same.stderr
    unsafe = answered("", "--pages", 10**9)
    assert unsafe.status == UNKNOWN and "[y/N]" not in unsafe.stderr, "a refusal comes before the question"


def test_never_below_what_is_in_use(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed + 20)
    server.start()
    held = borrowed.numbers().held
    assert held >= needed
    refused = apply("--pages", held - 1)
    assert refused.status == UNKNOWN and f"can be reduced to {held}" in refused.stderr
    assert borrowed.numbers().nr == held + 20
    assert apply("--pages", held).status == OK
    assert borrowed.numbers().surplus == 0 and borrowed.persistent() == held
    server.restart()
    assert borrowed.numbers().held == held, "a restart finds all its pages again"


def test_recommended(new_cluster, pool):
    """What a server in base pages lacks, found without being told of the server; and never fewer than there are."""
    server = new_cluster()
    borrowed = pool(2 * MB, 0)
    server.start()
    held = borrowed.numbers().held
    dry = apply("--recommended", "--dry-run")
    assert dry.status == OK and borrowed.numbers().nr == held
    assert f"pages are missing for {server.data}." in dry.stdout
    assert apply("--recommended").status == OK
    wanted = borrowed.persistent()
    assert f"would have {wanted} pages" in dry.stdout and wanted > held
    server.restart()
    assert main_mapping(server.postmaster).landed_in == "hugetlb"
    server.stop()
    again = apply("--recommended")
    assert again.status == OK and borrowed.persistent() == wanted, again
    assert apply("--recommended", "--pages", 1).status == USAGE


def test_surplus_pages_are_explained_and_kept(new_cluster, pool):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, 0, overcommit=needed + 10)
    server.start()
    numbers = until("surplus pages", lambda: (now := borrowed.numbers()).surplus and now)
    refused = apply("--pages", max(borrowed.persistent() - 1, 0))
    if borrowed.persistent():
        assert refused.status == UNKNOWN and f"{numbers.surplus} of the pool's pages are surplus" in refused.stderr
    # They become lasting ones, and no memory is taken for that.
    assert apply("--pages", numbers.nr).status == OK
    assert (borrowed.numbers().nr, borrowed.numbers().surplus) == (numbers.nr, 0)


def test_what_the_host_cannot_hold_is_refused(small):
    before = small.numbers()
    memory = meminfo()
    fits = (memory["MemTotal"] - memory["MemTotal"] * 20 // 100 - (memory["Hugetlb"] - before.nr * 2 * MB)) // (2 * MB)
    for asked in (fits + 1, 36569 * (1 + memory["MemTotal"] // (48 * GB)), 10**12):
        answer = apply("--pages", asked)
        assert answer.status == UNKNOWN and f"{asked} huge pages of 2 MB" in answer.stderr
        assert "stay for base pages" in answer.stderr
        most = int(re.search(r"at most (\d+) fit", answer.stderr).group(1))
        assert most <= fits
        assert small.numbers() == before
    # With less kept for base pages the same number is refused because too little memory is available, or is fine: never swapped.
    everything = apply("--pages", memory["MemTotal"] // (2 * MB), "--reserve-percent", 0)
    assert everything.status == UNKNOWN and "available without swapping" in everything.stderr
    assert small.numbers() == before


@pytest.mark.parametrize("grown", [0, 3], ids=["at once", "after some steps"])
def test_rolls_back_when_the_kernel_gives_fewer(pool, grown):
    """The kernel takes the number and gives no page: so it looks from outside where memory is fragmented."""
    before, wanted = (three_digits := pool(2 * MB, 110)).numbers(), 990
    with slow(three_digits, "--pages", wanted, tampering=nothing_given(after=grown)) as process:
        answer = end(process)
    assert answer.status == WARNING, answer
    assert f"of {wanted} pages of 2 MB" in answer.stderr and "after compaction" in answer.stderr
    assert "hugepagesz=2M" in answer.stderr, "a reservation at boot is the way out"
    assert f"keeps {before.nr} pages of 2 MB, as before" in answer.stderr
    assert three_digits.numbers() == before


def test_gigantic_pages_are_all_there_or_none(pool):
    """No trick: contiguous gigabytes are rare on a host that has been up for a while."""
    gigantic = pool(GB, 0)
    before, memory = gigantic.numbers(), meminfo()
    capacity = (memory["MemTotal"] * 80 // 100 - (memory["Hugetlb"] - before.nr * GB)) // GB
    wanted = min(capacity, before.nr + (memory["MemAvailable"] - memory["MemTotal"] // 50) // GB - 1)
    assert wanted > before.nr
    try:
        gigantic.resize(wanted)
        obtainable = wanted
    except PoolError:
        obtainable = gigantic.persistent()
    gigantic.resize(before.nr)
    answer = apply("--page-size", "1GB", "--pages", wanted)
    if answer.status == OK:
        assert gigantic.persistent() == wanted
        return
    assert obtainable < wanted, f"{obtainable} could be had by hand: {answer}"
    assert answer.status == WARNING and gigantic.numbers() == before
    assert int(re.search(r"the kernel gave (\d+) of", answer.stderr).group(1)) < wanted
    assert f"hugepagesz=1G hugepages={wanted}" in answer.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU, signal.SIGALRM],
                         ids=lambda number: number.name)
def test_a_signal_in_the_middle_rolls_back(small, number):
    before = small.numbers()
    with slow(small, "--pages", before.nr + 2000) as process:
        until("the pool to grow", lambda: small.numbers().nr > before.nr)
        os.kill(program(process), number)
        answer = end(process)
    assert answer.status == WARNING and "interrupted" in answer.stderr
    assert small.numbers() == before


def test_surplus_pages_in_use_are_surplus_again_after_an_interrupt(pool):
    """While the pool is larger the kernel counts them among its own pages."""
    borrowed = pool(2 * MB, 0, overcommit=400)
    held = borrowed.reserve(300)
    try:
        before = borrowed.numbers()
        assert before.surplus == 300
        with slow(borrowed, "--pages", borrowed.persistent() + 1500) as process:
            until("the pool to grow", lambda: borrowed.numbers().surplus == 0 and borrowed.numbers().nr > before.nr + 200)
            os.kill(program(process), signal.SIGTERM)
            answer = end(process)
        assert answer.status == WARNING and "interrupted" in answer.stderr, answer
        assert borrowed.numbers() == before
    finally:
        held.close()


ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM, signal.SIGXCPU,
          signal.SIGXFSZ, signal.SIGVTALRM, signal.SIGPROF}
"""Those after which the pool is put back."""
OF_THE_C_LIBRARY = {32, 33}
"""With which glibc and musl cancel threads and change their user: neither lets a program hold its own back."""


def test_no_other_signal_ends_it_in_the_middle(small):
    """All that can be caught: the kernel ends a program at most of them."""
    before = small.numbers()
    with slow(small, "--pages", before.nr + 500) as process:
        until("the pool to grow", lambda: small.numbers().nr > before.nr)
        pid = program(process)
        for number in set(range(1, 65)) - ENDING - OF_THE_C_LIBRARY - {signal.SIGKILL, signal.SIGSTOP}:
            os.kill(pid, number)
        answer = end(process)
    assert (answer.status, small.persistent()) == (OK, before.nr + 500), answer


@pytest.mark.parametrize("moment", ["before the rollback", "within it"])
def test_pages_that_others_take_meanwhile_stay(small, moment):
    before, highest = small.numbers(), 0

    def shrinks() -> bool:
        nonlocal highest
        highest = max(highest, now := small.numbers().nr)
        return now < highest

    with slow(small, "--pages", before.nr + 2000) as process:
        until("the pool to grow", lambda: small.numbers().nr > before.nr + 200)
        taken = [small.reserve(100)] if moment == "before the rollback" else []
        os.kill(program(process), signal.SIGTERM)
        if not taken:
            until("the pool to shrink", shrinks)
            taken.append(small.reserve(100))
        answer = end(process)
    held = small.numbers().held
    taken.pop().close()
    assert answer.status == WARNING and "Other processes have taken pages meanwhile and keep them." in answer.stderr, answer
    assert f"keeps {held} pages of 2 MB; before it kept {before.nr}." in answer.stderr
    assert small.persistent() == held == before.held + 100


def test_two_at_once(small):
    before = small.numbers()
    with slow(small, "--pages", before.nr + 300) as process:
        until("the first to be at work", lambda: small.numbers().nr > before.nr)
        second = apply("--pages", before.nr + 5)
        assert second.status == UNKNOWN and "another" in second.stderr and str(LOCK_FILE) in second.stderr
        assert end(process).status == OK
    assert small.persistent() == before.nr + 300
    assert apply("--pages", before.nr).status == OK


def test_the_lock_is_nobodys_else(small):
    """A link in its place is not followed, and a directory that other users can write to is not trusted."""
    LOCK_FILE.parent.mkdir(exist_ok=True)
    LOCK_FILE.unlink(missing_ok=True)
    target = small.directory / "none"
    LOCK_FILE.symlink_to(target)
    try:
        answer = apply("--pages", small.numbers().nr + 1)
        assert answer.status == UNKNOWN and str(LOCK_FILE) in answer.stderr
    finally:
        LOCK_FILE.unlink()
    LOCK_FILE.parent.chmod(0o777)
    try:
        answer = apply("--pages", small.numbers().nr + 1)
        assert answer.status == UNKNOWN and "a group or any user could put something else in its place" in answer.stderr
    finally:
        LOCK_FILE.parent.chmod(0o755)
    with open(LOCK_FILE, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert apply("--pages", small.numbers().nr + 1).status == UNKNOWN


def test_persist(small, settings):
    SYSCTL_FILE.write_text("# ours\nvm.hugetlb_shm_group = 0\nvm/nr_hugepages=1\n")
    wanted = small.numbers().nr + 20
    answer = apply("--pages", wanted, "--persist")
    assert answer.status == OK and f"{SYSCTL_FILE} sets it at every boot" in answer.stdout
    assert SYSCTL_FILE.read_text() == f"# ours\nvm.hugetlb_shm_group = 0\nvm.nr_hugepages = {wanted}\n"
    assert SYSCTL_FILE.stat().st_mode & 0o777 == 0o644
    small.resize(wanted - 5)
    run(shutil.which("sysctl", path="/usr/sbin:/sbin:/usr/bin"), "-p", str(SYSCTL_FILE))
    assert small.persistent() == wanted
    later = SYSCTL_FILE.with_name("95-test-of-pg-hugepages.conf")
    try:
        later.write_text("vm.nr_hugepages = 3\n")
        overridden = apply("--pages", wanted, "--persist")
        told = "the files of a container say nothing of the host's next boot" if is_container() else (
            f"At the next boot {later} sets 3 pages of 2 MB." if has_systemd() else
            f"the next boot is unknown: whether a boot without systemd reads {later} is not known")
        assert overridden.status == OK and told in overridden.stdout
    finally:
        later.unlink()


def test_persist_of_other_sizes(pool, settings):
    gigantic = pool(GB, 0)
    wanted = gigantic.numbers().nr
    assert apply("--page-size", "1GB", "--pages", wanted, "--persist").status == OK
    [line] = [line for line in TMPFILES_FILE.read_text().splitlines() if "hugepages-1048576kB" in line]
    assert line == f"w {nr_file(gigantic)} - - - - {wanted}"
    run("systemd-tmpfiles", "--create", str(TMPFILES_FILE))
    assert gigantic.persistent() == wanted


def test_nothing_is_persisted_that_was_not_had(pool, settings):
    SYSCTL_FILE.unlink(missing_ok=True)
    with slow(pool(2 * MB, 110), "--pages", 990, "--persist", tampering=nothing_given(after=0)) as process:
        assert end(process).status == WARNING
    assert not SYSCTL_FILE.exists()


def test_a_full_disk_leaves_the_old_file(small, settings, tmp_path):
    """sysctl.d on a file system without a byte left."""
    old = "vm.nr_hugepages = 7\n"
    wanted = small.numbers().nr + 5
    run("mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", str(SYSCTL_FILE.parent))
    try:
        SYSCTL_FILE.write_text(old)
        ballast = SYSCTL_FILE.with_name("ballast")
        with pytest.raises(OSError, match="No space left"):
            ballast.write_bytes(bytes(1 << 20))
        answer = apply("--pages", wanted, "--persist")
        assert answer.status == UNKNOWN
        assert "not for the next boot" in answer.stderr and "No space left on device" in answer.stderr
        assert SYSCTL_FILE.read_text() == old
        assert sorted(SYSCTL_FILE.parent.iterdir()) == sorted([SYSCTL_FILE, ballast])
        assert small.persistent() == wanted
    finally:
        run("umount", str(SYSCTL_FILE.parent))


def test_without_the_right_to(small):
    before = small.numbers()
    wanted = before.nr + 5
    ordinary = apply("--pages", wanted, user="postgres")
    assert ordinary.status == UNKNOWN and "run this as root" in ordinary.stderr
    container = subprocess.run(
        ["unshare", "--mount", "sh", "-c", 'mount -o remount,bind,ro /sys && exec "$0" "$@"',
         *sidecar.command("apply", "--yes", "--pages", wanted)], capture_output=True, text=True)
    assert container.returncode == UNKNOWN
    assert "Read-only file system" in container.stderr and "on the host itself" in container.stderr
    tree = Path(__file__).parents[1] / "fixtures/rhel7"
    elsewhere = apply("--pages", wanted, "--root", tree)
    assert elsewhere.status == USAGE
    for wrong in (["--pages", "x"], [], ["--pages", "1", "--page-size", "2"], ["--pages", "1", "--reserve-percent", "101"]):
        assert apply(*wrong).status in (USAGE, UNKNOWN)
    assert small.numbers() == before
