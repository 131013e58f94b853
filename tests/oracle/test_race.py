"""A reader in a loop while the writer runs at full speed: no partial line, and every mixture is detected.

RACE_SECONDS says how long; a minute is the real thing.
"""

import os
import shutil
import threading
import time

import pytest
from harness import oracle_loader
from harness.oracle_files import Writer, public_directory, script, write
from harness.oracle_loader import tables

pytestmark = pytest.mark.own_servers

INSTALL = script("install-sql")
SECONDS = float(os.environ.get("RACE_SECONDS", 4))


def snapshot(number):
    """A snapshot whose records contain its number; the number of records varies and may be 0."""
    return {
        "host_name": "race", "hosts": [{"memory_total": number, "notes": "n" * (number % 390)}],
        "pools": [{"page_size": number} for _ in range(number % 3)],
        "instances": [{"pid": number, "message": f"{number} " * (number % 40)} for _ in range(number % 4)],
        "findings": [{"priority": number, "command": "c" * (number % 240)} for _ in range(number % 5)],
    }


class Racer:
    """Writes snapshots continuously in a thread."""

    def __init__(self, directory):
        self.directory, self.written, self.error, self.stop = directory, 0, None, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        write(self.directory, snapshot(0))
        self.thread.start()
        return self

    def __exit__(self, *_exception):
        self.stop.set()
        self.thread.join()
        assert self.error is None, self.error

    def _run(self):
        try:
            with Writer(self.directory) as writer:
                while not self.stop.is_set():
                    self.written += 1
                    writer.write(snapshot(self.written))
        except BaseException as error:
            self.error = error


def numbers(rows):
    """The snapshot numbers in the records."""
    return {row[column] for name, column in (("hp_host", "memory_total"), ("hp_pool", "page_size"), ("hp_instance", "pid"),
                                             ("hp_finding", "priority")) for row in rows[name]}


def is_whole(rows):
    """Check that a snapshot has no record of another one, and that no record is missing."""
    seen = numbers(rows)
    [number] = seen if len(seen) == 1 else [None]
    return number is not None and [len(rows[f"hp_{name}"]) for name in ("pool", "instance", "finding")] \
        == [number % 3, number % 4, number % 5]


@pytest.fixture(params=["disk", "memory"])
def place(request):
    """A directory on a slow file system, and one on a fast file system."""
    made = public_directory("/dev/shm" if request.param == "memory" else None)
    yield made
    shutil.rmtree(made)


def test_loader_never_reads_a_partial_file(place):
    """Every file is complete at any time."""
    known, reads, mixtures, end = tables(INSTALL), 0, 0, time.monotonic() + SECONDS
    with Racer(place) as racer:
        while time.monotonic() < end:
            rows = {}
            for table in known.values():
                data = (place / table.location).read_bytes()
                assert data.endswith(b"\n")
                rows[table.name] = table.load(data)
                assert len({row["snapshot_id"] for row in rows[table.name]}) <= 1
                for line in data.splitlines():
                    assert line.count(b"|") == len(table.columns) - 1
            reads += 1
            mixtures += not is_whole(rows)
    print(f"{reads} reads, {racer.written} snapshots, {mixtures} mixtures")
    assert reads > 100 * SECONDS and racer.written > 10 * SECONDS
    assert oracle_loader.load(INSTALL, place)["hp_host"][0]["memory_total"] == racer.written


@pytest.mark.parametrize("attempts", [1, 20])
def test_package_detects_every_mixture(twin, attempts):
    """With one attempt instead of twenty the reader meets mixtures."""
    [made] = twin.run("SELECT pg_get_functiondef('hugepage.snapshot'::regproc) AS text")
    assert "FOR attempt IN 1 .. 20 LOOP" in made["text"]
    twin.run(made["text"].replace("1 .. 20 LOOP", f"1 .. {attempts} LOOP"))
    known, reads, noticed, end = tables(twin.install), 0, 0, time.monotonic() + SECONDS
    try:
        with Racer(twin.directory) as racer:
            while time.monotonic() < end:
                [row] = twin.run("SELECT (s).consistent, to_json((s).hosts) AS hosts, to_json((s).pools) AS pools, "
                                 "to_json((s).instances) AS instances, to_json((s).findings) AS findings "
                                 "FROM (SELECT hugepage.snapshot('FILE') AS s OFFSET 0) x")
                rows = {name: row[f"{name.removeprefix('hp_')}s"] for name in known}
                assert is_whole(rows) or row["consistent"] == "N", rows
                reads += 1
                noticed += row["consistent"] == "N"
    finally:
        twin.run(made["text"])
    print(f"{reads} reads, {racer.written} snapshots, {noticed} noticed with {attempts} attempts")
    assert reads > 20 * SECONDS and racer.written > 10 * SECONDS
