"""One server below many sessions for hours, while beside it the walk of ./dev foretell turns the host upside down. Run by
`./dev soak HOURS`. Ends with status 1 if anything failed, grew, or was lost."""

import argparse
import json
import os
import shlex
import sys
import tempfile
import threading
import time
import zlib
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from foretell.growth import growth
from foretell.load import Load
from foretell.histories import NAME, Allocation, assert_equal
from foretell.run import system_of, walks, write_row
from foretell.scores import Tally, counts, total
from foretell.walk import Walk
from foretell.world import World
from harness import sidecar
from harness.cluster import Cluster, Install
from harness.poll import until
from harness.preloaded import WATCHED, await_worker, worker
from harness.processes import status, status_bytes
from harness.reserved_host import ReservedHost
from harness.signals import unwind_on_signals
from harness.smaps import main_mapping
from harness.status import create_extension
from harness.units import KB, MB

GRAIN = {"memory": 128 * KB, "descriptors": 0.5}
"""Below this a process has not grown: its allocator moves in steps of 132 kB (M_TOP_PAD of malloc(3))."""


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.split("\n")[0])
    parser.add_argument("hours", type=float, metavar="HOURS", help="how long; 0.1 is six minutes")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the walk (default: 1)")
    parser.add_argument("--sessions", type=int, default=100, metavar="N", help="standing sessions (default: 100)")
    parser.add_argument("--rate", type=float, default=200, metavar="N", help="connections a second (default: 200)")
    parser.add_argument("--docs", type=Path, metavar="FILE", nargs="?", const=ROOT / "tests" / "tested-on.md",
                        help="write a row into the table of the file (tests/tested-on.md)")
    return parser.parse_args(arguments)


class Sampler(threading.Thread):
    """Reads memory and descriptors of the processes that live as long as the soak does."""

    def __init__(self, server: Cluster, watch: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self.server, self.watch, self.worker = server, watch, worker(server)
        self.standing = [row["pid"] for row in server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'standing'")]
        self.interval = max(0.5, min(30.0, seconds / 60))
        self.samples: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.error: Exception | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Until end() is called."""
        try:
            while not self._ended.wait(self.interval):
                for role, pids in self.processes().items():
                    self.samples[role, "memory"].append(sum(status_bytes(pid, "RssAnon") for pid in pids) / len(pids))
                    self.samples[role, "descriptors"].append(
                        sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids) / len(pids))
        except (OSError, KeyError) as error:
            self.error = error

    def processes(self) -> dict[str, list[int]]:
        """By name; the figures are those of one of them, on the average."""
        return {"worker": [self.worker], "postmaster": [self.server.postmaster], "session": self.standing,
                "sidecar": [self.watch]}

    def end(self) -> None:
        """Take no more samples."""
        self._ended.set()
        self.join()

    def zombies(self) -> int:
        """Children of these processes that have ended, twice in a row, without having been waited for."""
        parents = {str(pid) for pids in self.processes().values() for pid in pids}

        def now() -> set[int]:
            found = set()
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    fields = status(int(entry.name))
                except OSError:
                    continue
                if fields.get("State", "").startswith("Z") and fields.get("PPid") in parents:
                    found.add(int(entry.name))
            return found

        before = now()
        time.sleep(2)
        return len(before & now())


def damaged(path: Path) -> int:
    """Lines of a history whose checksum is not theirs."""
    def is_whole(line: bytes) -> bool:
        return len(line) > 9 and int(line[:8], 16) == zlib.crc32(line[9:]) and bool(json.loads(line[9:]))
    return sum(not is_whole(line) for line in path.read_bytes().splitlines())


def lost_history(server: Cluster, state: Path) -> str | None:
    """What is wrong with the histories of the server and of the sidecar; None if nothing is."""
    mapping = main_mapping(server.postmaster)
    try:
        assert_equal(server, [Allocation("start", mapping.landed_in, mapping.page_size)])
    except AssertionError as error:
        return str(error)
    files = [server.data / NAME, *state.glob("*.history")]
    count = sum(map(damaged, files))
    if count or len(files) < 2:
        return f"{count} damaged lines in {len(files)} files"
    return None


def figures(sampler: Sampler) -> tuple[list[str], list[str]]:
    """Lines of a table, and what has grown."""
    lines = ["| process | figure | after the warm-up | at the end | grown | noise |", "| --- | --- | --: | --: | --: | --: |"]
    wrong = []
    for (role, what), samples in sampler.samples.items():
        found = growth(samples, GRAIN[what])
        if not found:
            wrong.append(f"too few samples of the {role}: {len(samples)}")
            continue
        unit = KB if what == "memory" else 1
        name = "private memory, kB" if what == "memory" else what
        numbers = [f"{value / unit:.0f}" if unit > 1 else f"{value:.1f}" for value in (found.began, found.ended, found.grown, found.noise)]
        lines.append(f"| {role} | {name} | {' | '.join(numbers)} |")
        if found.grown:
            wrong.append(f"{what} of the {role} has grown")
    return lines, wrong


def main() -> int:
    chosen = options(sys.argv[1:])
    if os.geteuid() != 0:
        print("Huge pages of the host are changed: run this as root or with sudo.", file=sys.stderr)
        return 2
    unwind_on_signals()
    seconds = chosen.hours * 3600
    with ReservedHost() as host, tempfile.TemporaryDirectory(prefix="pg_hugepages-state-") as directory:
        # The executor keeps the rows of a function up to work_mem, so a session would grow as the history does.
        server = host.cluster(**WATCHED, shared_buffers="64MB", max_connections=chosen.sessions + 200, cluster_name="soak",
                              work_mem="64kB", log_min_messages="warning", **{"pg_hugepages.history_size": 100_000})
        host.pool(2 * MB, server.pages_needed(2 * MB))
        create_extension(server.start())
        await_worker(server)
        first_worker = worker(server)
        state, world_state = Path(directory, "watch"), Path(directory, "walk")
        world = World(host, world_state)
        errors = Path(directory, "stderr")
        with open(errors, "w") as stderr:
            watch = sidecar.start("watch", "--interval", "1s", "--state-dir", state, "--json", Path(directory, "survey.json"),
                                  stderr=stderr, stdout=stderr)
        try:
            dsn = f"host={server.root} port=5432 user=postgres dbname=postgres"
            with Load(dsn, chosen.sessions, chosen.rate) as load:
                standing = "SELECT count(*) n FROM pg_stat_activity WHERE application_name = 'standing'"
                until("the standing sessions", lambda: server.sql(standing)[0]["n"] == chosen.sessions, 120)
                sampler = Sampler(server, watch.pid, seconds)
                sampler.start()
                began = time.monotonic()
                failure = walks(argparse.Namespace(steps=10**9, seed=chosen.seed, minutes=chosen.hours * 60, no_shrinking=True), world)
                while time.monotonic() < began + seconds:
                    time.sleep(1)
                    load.read_errors()
                took = time.monotonic() - began
                sampler.end()
                zombies = sampler.zombies()
                dead = load.dead()
                rates = load.connections / took, load.polls / took
            lines, wrong = figures(sampler)
            lost = lost_history(server, state)
            if worker(server) != first_worker:
                wrong.append("the worker was replaced")
            if watch.poll() is not None:
                wrong.append(f"the sidecar has ended: {errors.read_text()[-500:]}")
        finally:
            watch.kill()
            watch.wait()
        problems = [line for line in server.log().splitlines() if " [" in line and any(
            f"] {level}:" in line for level in ("ERROR", "FATAL", "PANIC"))]
    tally = Tally(world.predictions)
    false = len(tally.false())
    wrong += [text for is_wrong, text in (
        (load.failures, f"{load.failures} errors of sessions: {load.errors[:3]}"), (dead, f"{dead} processes of the load have ended"),
        (problems, f"{len(problems)} errors in the log: {problems[:3]}"), (zombies, f"{zombies} zombies"),
        (lost, f"history: {lost}"), (false, f"{false} wrong answers of the walk"), (failure, f"the walk: {failure}"),
        (sampler.error, f"a process was gone: {sampler.error}")) if is_wrong]
    command = shlex.join(["./dev", "soak", *(word for word in sys.argv[1:] if word != "--docs")])
    system = system_of(Install.find())
    text = "\n".join([
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {system}:",
        f"{took / 60:.1f} minutes, {rates[0]:.0f} connections and {rates[1]:.0f} views a second, {chosen.sessions} standing "
        f"sessions; {Walk.steps} steps, {world.events} restarts and crashes beside them.", "", *lines, "",
        f"Errors {load.failures}, zombies {zombies}, lost records {'none' if not lost else lost}. Figures are of one process on the "
        "average.", total(tally),
        *([f"Wrong: {'; '.join(wrong)}"] if wrong else [])])
    print(text)
    if chosen.docs and not wrong:
        write_row(chosen.docs, "soak", system, command, counts(text))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
