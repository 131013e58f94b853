"""`hugepage-sidecar watch` and `check`: each loss is logged once, and remembered, as the extension does it."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import next_boot, sidecar
from harness.cluster import Cluster
from harness.oracle import SysV
from harness.poll import until
from harness.preloaded import PRELOADED, await_worker
from harness.processes import run, status_bytes
from harness.sidecar import CRITICAL, OK, UNKNOWN, USAGE, WARNING
from harness.status import create_extension
from harness.strace import traced
from harness.units import GB, KB, MB

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers, pytest.mark.files_answer]

HUGE = 2 * MB
_LINE = re.compile(r"^\S+Z (LOG|WARNING|DETAIL|HINT):  (.*)$")


class Watch:
    """A running `watch` with five surveys a second."""

    def __init__(self, directory: Path, *options: str | Path) -> None:
        self.state, self.json = directory / "state", directory / "survey.json"
        self.errors = directory / "stderr"
        self._process = sidecar.start("watch", "--interval", "200ms", "--state-dir", self.state, "--json", self.json,
                                      *options, stderr=open(self.errors, "a"))

    @property
    def pid(self) -> int:
        return self._process.pid

    def messages(self, name: str | Path = "") -> list[tuple[str, str]]:
        """Level and text of each message about one instance; without a name those about the sidecar itself."""
        lines = [match.groups() for match in map(_LINE.match, self.errors.read_text().splitlines()) if match]
        lines = [(level, text) for level, text in lines if level in ("LOG", "WARNING")]
        about = [(level, *text.partition(": ")[::2]) for level, text in lines]
        return [(level, text) for level, whose, text in about if whose == str(name)]

    def log(self) -> str:
        return self.errors.read_text()

    def wait_for_surveys(self, times: int = 2) -> None:
        """Wait for so many surveys that end from now on."""
        for _ in range(times):
            before = self._written()
            until("a survey", lambda: self._written() != before)

    def _written(self) -> tuple[int, int] | None:
        if not self.json.exists():
            return None
        status = self.json.stat()
        return status.st_ino, status.st_mtime_ns

    def history(self, name: str | Path, kind: str) -> list[dict[str, Any]]:
        """The records about an instance."""
        plain = re.sub(r"[^A-Za-z0-9._+]", "-", str(name).strip("/"))
        # After the name there is the user.
        files = list(self.state.glob(f"{kind}-{plain}.*history"))
        assert len(files) <= 1
        return [json.loads(line.partition(" ")[2]) for file in files for line in file.read_text().splitlines()]

    def bytes_read(self) -> int:
        """Of all files, by it and the children it has waited for (rchar in proc(5))."""
        lines = Path(f"/proc/{self._process.pid}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in lines)["rchar"])

    def memory(self) -> int:
        """In bytes; its peak begins anew (proc(5), clear_refs)."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")
        return status_bytes(self._process.pid, "VmHWM")

    def peak_memory(self) -> int:
        """The most that it had at once since `memory`."""
        return status_bytes(self._process.pid, "VmHWM")

    def end(self, number: int = signal.SIGTERM) -> float:
        """Tell it to end; how long that took, in seconds."""
        begun = time.monotonic()
        self._process.send_signal(number)
        assert self._process.wait(timeout=10) == OK
        return time.monotonic() - begun

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def outlive_tolerance(pid: int) -> None:
    """Wait until a start from now on is told from that of process `pid`: by less than 2 s two starts are one."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    started = ticks / os.sysconf("SC_CLK_TCK")
    until("another time", lambda: time.clock_gettime(time.CLOCK_BOOTTIME) > started + 2.1)


@contextmanager
def watching(directory: Path, *options: str | Path) -> Iterator[Watch]:
    watch = Watch(directory, *options)
    try:
        watch.wait_for_surveys(1)
        yield watch
    finally:
        watch.kill()


def check(watch: Watch, name: str | Path) -> int:
    answer = sidecar.run("check", "--state-dir", watch.state, "--instance", name)
    assert len(answer.stdout.splitlines()) == 1 and answer.stdout.startswith("HUGEPAGES "), answer
    return answer.status


@pytest.fixture
def server(new_cluster, pool) -> tuple[Cluster, Any]:
    """A server in huge pages, and the pool, which has just what it needs."""
    server = new_cluster(shared_buffers="64MB")
    borrowed = pool(HUGE, server.pages_needed(HUGE))
    return server.start(), borrowed


@pytest.mark.whole_host
def test_postgresql_before_at_and_after_a_loss(server, tmp_path):
    """The pool shrinks and grows again: one warning, one recovery. It shrinks for good: a restart loses huge pages."""
    server, borrowed = server
    enough = borrowed.persistent()
    with watching(tmp_path) as watch:
        assert check(watch, server.data) == OK
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages(server.data)) == 2)
        watch.wait_for_surveys()
        assert check(watch, server.data) == WARNING
        borrowed.resize(enough)
        until("the recovery", lambda: len(watch.messages(server.data)) == 3)
        watch.wait_for_surveys()
        assert check(watch, server.data) == OK
        borrowed.resize(0)
        until("the second warning", lambda: len(watch.messages(server.data)) == 4)
        outlive_tolerance(server.postmaster)
        server.restart()
        until("the regression", lambda: len(watch.messages(server.data)) == 5)
        watch.wait_for_surveys()
        levels, texts = zip(*watch.messages(server.data))
        assert levels == ("LOG", "WARNING", "LOG", "WARNING", "WARNING"), texts
        assert "landed in" in texts[0] and "huge pages of 2 MB" in texts[0]
        assert texts[1] == texts[3] == "the next start would lose huge pages (also after a crash) [restart_loses]"
        assert texts[2] == "the next start would get its huge pages again (also after a crash)"
        assert "regressed: it" in texts[4] and "is in 4 kB pages" in texts[4]
        # Small as it is, what it has lost is a warning as long as this start lasts.
        assert check(watch, server.data) == WARNING
        records = watch.history(server.data, "postgresql")
        assert [(record["event"], record["landed_in"], record["generation"]) for record in records] == [
            ("start", "hugetlb", 1), ("change", "hugetlb", 1), ("change", "hugetlb", 1), ("change", "hugetlb", 1),
            ("start", "base", 1)], [record["detail"] for record in records]
        assert "HINT:  Run" in watch.log()


def test_a_crash_restart(server, tmp_path):
    """It takes the pages it had, or not: the postmaster stays, the memory is another."""
    server, borrowed = server
    with watching(tmp_path) as watch:
        postmaster = server.postmaster
        assert server.crash()
        until("the crash restart", lambda: len(watch.history(server.data, "postgresql")) == 2)
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages(server.data)) == 3)
        assert server.crash() and server.postmaster == postmaster
        until("the loss", lambda: len(watch.messages(server.data)) == 4)
        watch.wait_for_surveys()
        # A survey may see the server before the crash, and the pool after it.
        records = [record for record in watch.history(server.data, "postgresql")
                   if not re.fullmatch(r"nr_hugepages from \d+ to \d+", record["detail"] or "")]
        assert [(record["event"], record["landed_in"], record["generation"]) for record in records] == [
            ("start", "hugetlb", 1), ("crash_restart", "hugetlb", 2), ("change", "hugetlb", 2),
            ("crash_restart", "base", 3)]
        assert len({record["postmaster_start"] for record in records}) == 1
        level, text = watch.messages(server.data)[-1]
        assert level == "WARNING" and "regressed: it" in text


def test_a_crash_restart_within_a_survey(server, tmp_path):
    """Why pages were lost is told by the pool as it is after the loss."""
    server, borrowed = server
    with watching(tmp_path) as watch:
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages(server.data)) == 2)
        # It reads this file after the pool and before the servers, and is there most of the time.
        with traced(watch.pid, "openat", inject="openat:delay_exit=700000", path=Path("/proc/sys/kernel/shmall")):
            watch.wait_for_surveys(1)
            assert server.crash()
            until("the loss", lambda: len(watch.messages(server.data)) == 3)
        assert watch.history(server.data, "postgresql")[-1]["cause"] == "pool_empty"


@pytest.mark.whole_host
def test_an_sga_that_comes_back_mixed(oracle, pool, tmp_path):
    borrowed = pool(HUGE, 16)
    first = oracle.instance("ORCL", SysV(30 * MB, HUGE), SysV(2 * MB, HUGE), servers=1)
    with watching(tmp_path) as watch:
        assert check(watch, "ORCL") == OK
        outlive_tolerance(first.pmon)
        first.stop()
        watch.wait_for_surveys()
        oracle.instance("ORCL", SysV(30 * MB, HUGE), SysV(2 * MB))
        until("the regression", lambda: len(watch.messages("ORCL")) == 2)
        watch.wait_for_surveys()
        level, text = watch.messages("ORCL")[-1]
        assert level == "WARNING" and "regressed: it" in text
        assert check(watch, "ORCL") == WARNING
        records = watch.history("ORCL", "oracle")
        assert [(record["event"], record["landed_in"], record["generation"]) for record in records] == [
            ("start", "hugetlb", 1), ("start", "mixed", 1)]
        # One that is gone is no news, and nobody's past is lost.
        oracle.instances[-1].stop()
        watch.wait_for_surveys()
        assert len(watch.history("ORCL", "oracle")) == 2 and check(watch, "ORCL") == UNKNOWN
    assert borrowed.numbers().nr >= 16


def test_an_sga_whose_pool_shrinks(oracle, pool, tmp_path):
    borrowed = pool(HUGE, 20)
    oracle.instance("ORCL", SysV(24 * MB, HUGE), servers=1)
    with watching(tmp_path) as watch:
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages("ORCL")) == 2)
        watch.wait_for_surveys()
        borrowed.resize(20)
        until("the recovery", lambda: len(watch.messages("ORCL")) == 3)
        watch.wait_for_surveys()
        assert [level for level, _text in watch.messages("ORCL")] == ["LOG", "WARNING", "LOG"]


@pytest.mark.whole_host
def test_a_restart_of_the_sidecar_is_no_news(server, oracle, tmp_path):
    server, borrowed = server
    oracle.instance("ORCL", SysV(2 * MB))
    with watching(tmp_path) as watch:
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages(server.data)) == 2)
        watch.wait_for_surveys()
        before, records = watch.log(), watch.history(server.data, "postgresql")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            assert watch.end(number) < 0.5
            with watching(tmp_path) as watch:
                watch.wait_for_surveys()
                watch.end()
            watch = Watch(tmp_path)
            watch.wait_for_surveys()
        watch.kill()
        assert watch.log() == before
        assert watch.history(server.data, "postgresql") == records
    # `watch --once` is one survey, with the exit status of `status`.
    once = sidecar.run("watch", "--once", "--state-dir", tmp_path / "state")
    assert (once.status, once.stdout, once.stderr) == (WARNING, "", "")


def test_the_extension_keeps_the_same(new_cluster, pool, tmp_path):
    """Of one server both tell the same story, and the extension reads the sidecar's file as its own."""
    server = new_cluster(shared_buffers="64MB", **PRELOADED)
    borrowed = pool(HUGE, server.pages_needed(HUGE))
    create_extension(server.start())
    with watching(tmp_path) as watch:
        until("the start", lambda: watch.history(server.data, "postgresql"))
        assert server.crash()
        until("the crash restart", lambda: len(watch.history(server.data, "postgresql")) == 2)
        borrowed.resize(0)
        outlive_tolerance(server.postmaster)
        server.restart()
        until("the regression", lambda: watch.history(server.data, "postgresql")[-1]["landed_in"] == "base")
        await_worker(server)
        watch.end()
        names = ["event", "generation", "landed_in", "page_size", "shared_memory", "pages_needed", "host", "boot_id",
                 "cause", "regression"]
        query = f"SELECT {', '.join(names)} FROM hugepage_history WHERE event <> 'change' ORDER BY recorded_at"
        ours = server.sql(query)
        assert [(row["event"], row["landed_in"], row["regression"]) for row in ours] == [
            ("start", "hugetlb", False), ("crash restart", "hugetlb", False), ("start", "base", True)]
        kept = server.data / "pg_hugepages.history"
        theirs, = watch.state.glob(f"postgresql-*{server.root.name}*.history")
        owner = kept.stat()
        shutil.copyfile(theirs, kept)
        assert (kept.stat().st_uid, kept.stat().st_ino) == (owner.st_uid, owner.st_ino)
        assert server.sql(query) == ours


def test_a_long_history_of_the_server_is_not_read_at_every_look(new_cluster, tmp_path):
    """And where it is read, after a crash, it is not held in memory."""
    server = new_cluster(shared_buffers="64MB", **PRELOADED, **{"pg_hugepages.history_size": 100_000}).start()
    kept = server.data / "pg_hugepages.history"
    kept.write_bytes(kept.read_bytes() * 10_000)
    with watching(tmp_path) as watch:
        watch.wait_for_surveys(1)
        before = watch.bytes_read()
        watch.wait_for_surveys(3)
        assert watch.bytes_read() - before < kept.stat().st_size
        size = watch.memory()
        assert server.crash()
        watch.wait_for_surveys(3)
        assert watch.peak_memory() - size < kept.stat().st_size / 4


def test_a_full_disk(server, tmp_path):
    """The failure is logged once, the watch goes on, nothing else is repeated; with room again the history is whole."""
    server, borrowed = server
    state = tmp_path / "state"
    state.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={64 * KB},mode=755", "none", state)
    try:
        ballast = state / "ballast"
        ballast.write_bytes(b"\0" * 64 * KB)
        with watching(tmp_path) as watch:
            until("the line of the start", lambda: watch.messages(server.data))
            watch.wait_for_surveys(3)
            assert [level for level, _text in watch.messages(server.data)] == ["LOG"]
            line, = (line for line in watch.log().splitlines() if server.root.name in line and "No space" in line)
            assert re.search('WARNING:  could not write history file ".*": No space left on device .os error 28.$', line)
            borrowed.resize(0)
            until("the warning", lambda: len(watch.messages(server.data)) == 2)
            watch.wait_for_surveys()
            assert len(watch.messages(server.data)) == 2
            ballast.unlink()
            until("the history", lambda: len(watch.history(server.data, "postgresql")) == 2)
            assert [record["event"] for record in watch.history(server.data, "postgresql")] == ["start", "change"]
            assert watch.end() < 0.5
    finally:
        run("umount", state)


def test_a_damaged_history_of_boots(server, tmp_path):
    """It is said, and made anew with the looks that are left; where they may be missing, no next boot is known from them."""
    with watching(tmp_path) as watch:
        kept = watch.state / "boots.history"
        until("the first look", kept.exists)
        watch.end()
        whole = kept.read_text()
        kept.write_text(f"{whole}0bad line of a boot\n")
        answer = sidecar.run("status", "--state-dir", watch.state, "--format", "json")
        if next_boot.is_unseen():
            assert f"{kept} is damaged" in answer.stdout
    with watching(tmp_path) as watch:
        watch.wait_for_surveys(2)
        [said] = [line for line in watch.log().splitlines() if "boots.history" in line]
        assert f"WARNING:  {kept} is damaged, so it was made anew; what it said of earlier boots may be lost" in said
        assert kept.read_text() == whole


def test_an_output_file_that_cannot_be_written_stays_as_it_was(oracle, tmp_path):
    oracle.instance("ORCL", SysV(2 * MB))
    disk = tmp_path / "disk"
    disk.mkdir()
    run("mount", "-t", "tmpfs", "-o", f"size={64 * KB}", "none", disk)
    try:
        with watching(tmp_path, "--textfile", disk / "hugepages.prom") as watch:
            watch.wait_for_surveys(1)
            watch.end()
            before = (disk / "hugepages.prom").read_text()
            assert before.endswith("# EOF\n")
        with pytest.raises(OSError, match="No space left"), open(disk / "ballast", "wb", buffering=0) as ballast:
            while ballast.write(b"\0" * KB):
                pass
        with watching(tmp_path, "--textfile", disk / "hugepages.prom") as watch:
            watch.wait_for_surveys(2)
            # At every survey: a reader of the old file has no other sign that it is old.
            assert watch.log().count("No space left on device") >= 2
            assert (disk / "hugepages.prom").read_text() == before
            assert {path.name for path in disk.iterdir()} == {"hugepages.prom", "ballast"}
    finally:
        run("umount", disk)


def test_without_a_history(server, tmp_path):
    """Nothing is kept, and still nothing is logged twice."""
    server, borrowed = server
    with watching(tmp_path, "--history-size", "0") as watch:
        borrowed.resize(0)
        until("the warning", lambda: len(watch.messages(server.data)) == 2)
        watch.wait_for_surveys(3)
        assert [level for level, _text in watch.messages(server.data)] == ["LOG", "WARNING"]
        assert not watch.state.exists()


def test_exit_statuses(server, new_cluster, oracle, tmp_path):
    """0 well, 1 warning, 2 critical, 3 unknown, 64 a wrong call."""
    server, borrowed = server
    def status(*arguments: str | Path) -> int:
        return sidecar.run("check", "--state-dir", tmp_path, *arguments).status
    assert status("--instance", server.data) == OK
    borrowed.resize(0)
    assert status("--instance", server.data) == WARNING
    server.stop()
    borrowed.resize(borrowed.numbers().held + server.pages_needed(HUGE))
    server.conf(huge_pages=True)
    server.start()
    # Where nothing sets the pool at boot, such a server does not start then.
    assert status("--instance", server.data) == (WARNING if next_boot.well("on") == "warning" else OK)
    borrowed.resize(0)
    assert status("--instance", server.data) == CRITICAL
    assert status("--instance", "NOBODY") == UNKNOWN
    assert status("--no-such-option") == USAGE
    assert sidecar.run("check", "--reserve-percent", "95").status == USAGE
    assert sidecar.run("watch", "--interval", "0s", "--state-dir", tmp_path).status == USAGE
    oracle.instance("LARGE", SysV(GB, touch=False))
    answer = sidecar.run("check", "--state-dir", tmp_path, "--instance", "LARGE")
    assert answer.status == WARNING and "LARGE" in answer.stdout
    figures = dict(figure.split("=") for figure in answer.stdout.strip().rpartition(" | ")[2].split())
    assert figures["instances"] == "1" and figures["instances_in_huge_pages"] == "0"
    assert int(figures["pages_missing"]) == 512
