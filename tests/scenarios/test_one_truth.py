"""One server in many states: all faces of the project say the same of it, or differ for a reason that is listed here.

The extension speaks in `hugepage_status`, in what exporters query, in its history and the worker's log; the sidecar in `status`,
`check`, `metrics`, `report` and the file for Oracle. The alert rules evaluate the metrics.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness import next_boot, sidecar
from harness.cgroup import Cgroup, hugetlb_cgroup
from harness.cluster import Cluster
from harness.oracle_files import script
from harness.oracle_loader import tables
from harness.poll import until
from harness.pool import Pool
from harness.preloaded import WATCHED, await_answer
from harness.prometheus import MONITORING, Samples, queried, samples
from harness.server_log import messages
from harness.shared_server import SharedServer
from harness.shmem_thp import borrowed_shmem_thp
from harness.units import GB, MB

pytestmark = pytest.mark.any_major

Row = dict[str, Any]
"""The values of one face, by column of hugepage_status; of a face only those that it shows."""

COLUMNS = ("verdict", "message", "hint", "landed_in", "page_size", "cause", "shared_memory", "pages_needed", "pages_missing",
           "restart_outlook", "crash_outlook", "recommended_nr_hugepages")
LEVELS = ("ok", "notice", "warning", "critical")
THREATS = {"restart_loses", "restart_fails", "cgroup_limit"}
"""Findings that the worker warns of."""

NOT_PRELOADED = {"shared_preload_libraries": "", "pg_hugepages.sample_interval": None}

RECORDED = ("landed_in", "page_size", "cause", "shared_memory", "pages_needed", "restart_outlook")
"""The columns that hugepage_history has as well."""


# The faces

def of_metrics(found: Samples, name: Path) -> Row:
    """The columns that the metrics of an instance show, and `findings` by name."""
    own = {key: value for key, value in found.items() if ("name", str(name)) in key[1]}
    number = {metric: int(value) for (metric, labels), value in own.items() if len(labels) == 2}

    def state(metric: str) -> str | None:
        present = [dict(labels)[metric] for (found, labels), value in own.items() if found == metric and value == 1]
        return present[0] if present else None

    return {
        "verdict": LEVELS[number["hugepage_verdict"]],
        "landed_in": state("hugepage_landed_in"),
        "page_size": number.get("hugepage_page_size_bytes"),
        "cause": state("hugepage_fallback_cause"),
        "shared_memory": number.get("hugepage_shared_memory_bytes"),
        "pages_needed": number.get("hugepage_pages_needed"),
        "pages_missing": number.get("hugepage_pages_missing"),
        "restart_outlook": state("hugepage_restart_outlook"),
        "crash_outlook": state("hugepage_crash_outlook"),
        "recommended_nr_hugepages": number.get("hugepage_recommended_nr_hugepages"),
        "findings": {dict(labels)["finding"]: LEVELS[int(value)] for (metric, labels), value in own.items()
                     if metric == "hugepage_finding_severity" and value},
    }


def alert_inputs(found: Samples, name: Path) -> Samples:
    """The samples of the instance that an expression of the alert rules reads."""
    read = set(re.findall(r"\bhugepage_\w+", (MONITORING / "prometheus/alerts.yaml").read_text()))
    assert {"hugepage_finding_severity", "hugepage_landed_in", "hugepage_fallback_cause"} <= read
    # The version is that of whoever shows the metrics.
    return {key: value for key, value in found.items() if key[0] in read - {"hugepage_build_info"} and ("name", str(name)) in key[1]}


class Report(HTMLParser):
    """The figures of each instance of the report, by the name of the field."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.instances: list[Row] = []
        self._field: str | None = None
        self._inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "article" and str(attributes.get("id", "")).startswith("instance-"):
            self.instances.append({})
            self._inside = True
        name = attributes.get("data-field")
        if name and self._inside:
            shown = self.instances[-1]
            if tag == "data":
                shown[name] = int(attributes["value"])
            elif name not in shown:
                shown[name], self._field = "", name

    def handle_endtag(self, tag: str) -> None:
        self._field = None
        self._inside &= tag != "article"

    def handle_data(self, data: str) -> None:
        if self._field:
            self.instances[-1][self._field] += data


def of_report(html: str, pid: int) -> Row:
    shown, = (shown for shown in Report(html).instances if shown["pid"] == pid)
    numbers = {name for name in COLUMNS if name.startswith("pages_") or name.endswith("_hugepages")}
    return {column: None if column in numbers and shown.get(column) == "unknown" else shown.get(column)
            for column in COLUMNS if column != "crash_outlook"}


@cache
def oracle_table() -> Any:
    return tables(script("install-sql"))["hp_instance"]


def of_oracle_file(text: str, pid: int) -> Row:
    """The record of the instance; texts are cut to the width of their columns."""
    row, = (row for row in oracle_table().load(text.encode()) if row["pid"] == pid)
    return {column: row[column] for column in COLUMNS if column in row}


class Faces:
    """What every face says of the server now."""

    def __init__(self, server: Cluster, state_directory: Path, log_from: int) -> None:
        pid, options = server.postmaster, ("--state-dir", state_directory)
        [self.view] = server.sql("SELECT * FROM hugepage_status")
        found = queried(server.connect())
        self.metrics = of_metrics(found, server.data)
        self.alerts = alert_inputs(found, server.data)
        status = sidecar.run("status", "--format", "json", *options)
        [self.status] = [row for row in status.json()["instances"] if row["pid"] == pid]
        self.check = sidecar.run("check", "--instance", server.data, *options)
        found = samples(sidecar.run("metrics", *options).stdout)
        self.sidecar_metrics = of_metrics(found, server.data)
        self.sidecar_alerts = alert_inputs(found, server.data)
        self.report = of_report(sidecar.run("report", "--html", "-", *options).stdout, pid)
        self.oracle = of_oracle_file(sidecar.run("oracle", "print", "hp_instance.dat", *options).stdout, pid)
        self.log = server.log()[log_from:]

    def of_extension(self) -> None:
        """Assert that all faces of the extension agree with its view."""
        assert_same("queries", self.metrics, self.view, COLUMNS)

    def of_sidecar(self) -> None:
        """Assert that all faces of the sidecar agree with its `status`."""
        assert_same("metrics", self.sidecar_metrics, self.status, COLUMNS)
        assert_same("report", self.report, self.status, COLUMNS)
        texts = {name: self.status[name] for name in ("message", "hint")}
        # What to do is there as it is, and a sentence may end early.
        assert_same("Oracle file", self.oracle, self.status, [name for name in COLUMNS if name != "message"])
        assert (self.oracle["message"] or "")[:280] == (texts["message"] or "")[:280]
        verdict = self.status["verdict"]
        is_hidden = self.status["landed_in"] == "unknown"
        status = {"warning": sidecar.WARNING, "critical": sidecar.CRITICAL}.get(
            verdict, sidecar.UNKNOWN if is_hidden else sidecar.OK)
        # What is no warning needs no command.
        shown = texts.values() if status != sidecar.OK else [texts["message"]]
        text = " ".join(text for text in shown if text)
        assert ("OK (notice) - " in self.check.stdout) == (status == sidecar.OK and verdict == "notice")
        assert (self.check.status, text in self.check.stdout) == (status, True), (self.check, self.status)


def assert_same(name: str, row: Row, other: Row, columns: Any) -> None:
    """Both have the same values in all columns that the first one shows."""
    differ = {column: (row[column], other[column]) for column in columns if column in row and row[column] != other[column]}
    assert not differ, f"{name}: {differ}"


# The states

@dataclass
class World:
    """The server, the pools and the groups of one state."""

    shared: SharedServer
    scope: ExitStack
    log_from: int = 0
    needed: int = 0

    @property
    def server(self) -> Cluster:
        return self.shared.server

    def start(self, spare: int | None = 0, page_size: int = 2 * MB, within: Cgroup | None = None, **settings: Any) -> Pool:
        """Start the server with these settings and so many spare pages of that size; None: with an empty pool."""
        self.shared.configure(**{**WATCHED, **settings})
        pool = self.shared.pools[page_size]
        self.needed = self.server.pages_needed(page_size)
        pool.resize(pool.numbers().held + (0 if spare is None else self.needed + spare))
        self.server.start(within)
        return pool

    def group(self) -> Cgroup:
        return self.scope.enter_context(hugetlb_cgroup())

    def hold(self, pages: int) -> None:
        """Reserve pages of 2 MB for this process."""
        self.scope.callback(Pool(2 * MB).reserve(pages).close)

    def overcommit(self, pool: Pool, pages: int) -> None:
        found = pool.numbers().overcommit
        self.scope.callback(pool.overcommit, found)
        pool.overcommit(pages)


@pytest.fixture
def world(shared_server: SharedServer) -> Iterator[World]:
    server = shared_server.server
    server.stop()
    shared_server.empty_pools()
    # Each state has a past of its own, and no other one's.
    (server.data / "pg_hugepages.history").unlink(missing_ok=True)
    with ExitStack() as scope:
        world = World(shared_server, scope, log_from=len(server.log()))
        yield world
        server.stop("immediate")
        (server.data / "postgresql.auto.conf").write_text("")
    shared_server.empty_pools()


@dataclass(frozen=True)
class State:
    """One state: how to bring it about, its verdict, cause and outlook, and where the sidecar differs."""

    arrange: Callable[[World], object]
    verdict: str
    cause: str | None
    outlook: str
    differs: frozenset[str] = frozenset()
    reason: str | None = None
    findings: tuple[str, ...] = field(default=())


STATES: dict[str, State] = {}


def state(verdict: str, cause: str | None, outlook: str, *findings: str, differs: str = "",
          reason: str | None = None) -> Any:
    """Register a state; `differs`: the columns in which the sidecar differs from the view, and why."""
    def register(arrange: Callable[[World], object]) -> Callable[[World], object]:
        assert bool(differs) == bool(reason)
        STATES[arrange.__name__] = State(arrange, verdict, cause, outlook, frozenset(differs.split()), reason, findings)
        return arrange
    return register


FILES = ("the settings of a running server are in its memory, which the sidecar does not read; it takes what the files ask for "
         "as what the server was started with")
HOST = "the sidecar sees every server of the host and can say what they need; a server sees only which pages are held"
ASKED = "the worker asks the server's program what changed files come to, and of the sidecar `size` alone does"
BOOT = frozenset({"verdict", "message", "hint", "findings"})
"""Where the sidecar, which looks at the next boot, differs from a server that does not preload the library and has nobody who looks."""


@state("ok", None, "hugetlb")
def as_asked(world: World) -> None:
    world.start(spare=4)


@state("ok", None, "hugetlb")
def as_asked_to_the_page(world: World) -> None:
    world.start()


@state("ok", None, "hugetlb")
def huge_pages_on(world: World) -> None:
    world.start(huge_pages="on")


@state("notice", "pool_empty", "base", "base_pages")
def pool_empty(world: World) -> None:
    world.start(spare=None)


@state("warning", "pool_empty", "base", "base_pages")
def pool_empty_with_a_gigabyte(world: World) -> None:
    world.start(spare=None, shared_buffers="1GB")


@state("notice", "pool_too_small", "base", "base_pages")
def pool_too_small(world: World) -> None:
    world.start(spare=-1)


@state("notice", "pool_taken", "base", "base_pages")
def pool_taken(world: World) -> None:
    world.shared.pools[2 * MB].resize(world.shared.pools[2 * MB].numbers().held + 10)
    world.hold(10)
    world.start(spare=-5)


@state("notice", "pool_too_small", "hugetlb", "base_pages")
def pool_grown_since(world: World) -> None:
    pool = world.start(spare=-1)
    pool.resize(pool.persistent() + 1)


@state("notice", "disabled", "base", "base_pages")
def huge_pages_off(world: World) -> None:
    world.start(spare=None, huge_pages="off")


@state("notice", "disabled", "hugetlb", "base_pages", reason=ASKED, differs="message hint restart_outlook findings")
def off_but_try_on_disk(world: World) -> None:
    world.start(huge_pages="off")
    world.server.conf(huge_pages="try")


@state("notice", "disabled", "unknown", "base_pages", "outlook_unknown", reason=FILES, differs="message cause crash_outlook")
def off_but_try_on_disk_without_a_history(world: World) -> None:
    world.start(huge_pages="off", **NOT_PRELOADED)
    world.server.conf(huge_pages="try")


@state("notice", "sysv_shared_memory", "base", "base_pages")
def sysv(world: World) -> None:
    world.start(spare=None, shared_memory_type="sysv")


@state("notice", "page_size_unsupported", "base", "base_pages")
def page_size_that_the_kernel_lacks(world: World) -> None:
    world.start(spare=None, huge_page_size="16MB")


@state("notice", None, "hugetlb", "pool_wasted", differs="verdict message hint findings", reason=HOST)
def pool_twice_as_large(world: World) -> None:
    world.start(spare=200)


@state("ok", None, "hugetlb")
def gigantic_pages(world: World) -> None:
    world.start(page_size=GB, huge_page_size="1GB")


@state("notice", "pool_empty", "base", "base_pages")
def no_gigantic_pages(world: World) -> None:
    world.start(spare=None, page_size=GB, huge_page_size="1GB")


@state("critical", None, "hugetlb", "cgroup_limit")
def fault_limit_below_the_segment(world: World) -> None:
    group = world.group()
    world.start(within=group)
    group.limit(2 * MB, max=(world.needed - 1) * 2 * MB)


@state("notice", "cgroup_limit", "base", "base_pages", "limit_hit")
def no_reservation_allowed(world: World) -> None:
    group = world.group()
    group.limit(2 * MB, rsvd_max=0)
    world.start(within=group)


@state("warning", None, "base", "restart_loses")
def pool_lowered_beside_it(world: World) -> None:
    world.start().resize(0)


@state("critical", None, "fails", "restart_fails")
def pool_lowered_beside_one_that_insists(world: World) -> None:
    world.start(huge_pages="on").resize(0)


@state("notice", None, "unknown", "outlook_unknown")
def surplus_pages_alone(world: World) -> None:
    world.overcommit(world.shared.pools[2 * MB], 200)
    world.start(spare=None)


@state("warning", "pool_empty", "base", "regressed", "base_pages")
def lost_at_a_crash(world: World) -> None:
    world.start().resize(0)
    assert world.server.crash()


@state("warning", "pool_empty", "base", "regressed", "base_pages")
def lost_at_a_restart(world: World) -> None:
    pool = world.start()
    world.server.stop()
    pool.resize(0)
    world.server.start()


@state("warning", None, "base", "restart_loses", reason=ASKED,
       differs="verdict message hint restart_outlook recommended_nr_hugepages findings")
def larger_on_disk(world: World) -> None:
    world.start()
    world.server.conf(shared_buffers="64MB")
    await_answer(world.server)


@state("critical", None, "fails", "restart_fails", reason=ASKED, differs="verdict message hint restart_outlook findings")
def broken_on_disk(world: World) -> None:
    world.start()
    world.server.conf(shared_preload_libraries="nonesuch")
    await_answer(world.server)


@state("notice", "pool_empty", "base", "transparent_huge_pages")
def transparent(world: World) -> None:
    world.scope.enter_context(borrowed_shmem_thp("always"))
    world.start(spare=None)
    until("the worker's sample", lambda: world.server.sql("SELECT landed_in FROM hugepage_status")[0]["landed_in"] == "thp")


@state("ok", None, "hugetlb")
def not_preloaded(world: World) -> None:
    world.start(**NOT_PRELOADED)


@pytest.mark.parametrize("name", STATES)
def test_state(world: World, tmp_path: Path, name: str) -> None:
    expected, server = STATES[name], world.server
    expected.arrange(world)
    if server.sql("SELECT generation FROM hugepage_status")[0]["generation"] is not None:
        await_answer(server)
    faces = Faces(server, tmp_path, world.log_from)
    view = faces.view
    is_preloaded = view["generation"] is not None
    # What a restart keeps the next boot may lose, where nothing sets the pool.
    is_kept = expected.cause is None and expected.outlook in ("hugetlb", "unknown")
    is_lost_at_boot = is_kept and next_boot.is_unseen()
    at_boot = {"boot_unknown": next_boot.well(view["huge_pages"])} if is_lost_at_boot and is_preloaded else {}
    verdict = max(expected.verdict, *at_boot.values(), "ok", key=LEVELS.index)
    assert (view["verdict"], view["cause"], view["restart_outlook"]) == (verdict, expected.cause, expected.outlook), view
    assert faces.metrics["findings"].keys() == {*expected.findings, *at_boot}
    faces.of_extension()
    faces.of_sidecar()
    if is_preloaded:
        assert_worker_agrees(server, view, faces.metrics["findings"].keys(), world.log_from)
    # Between the two, exactly what is listed.
    # Each says whom its numbers count.
    whom = re.compile(r" The number counts .* the whole host\.$")
    shown = [{column: whom.sub("", row[column]) if column == "hint" and row[column] else row[column] for column in COLUMNS}
             for row in (view, faces.status)]
    differ = {column for column in COLUMNS if shown[0][column] != shown[1][column]}
    if faces.metrics["findings"] != faces.sidecar_metrics["findings"]:
        differ.add("findings")
    differs = expected.differs | (BOOT if is_lost_at_boot and not is_preloaded else frozenset())
    assert differ == differs, {column: (view.get(column), faces.status.get(column)) for column in differ}
    if "restart_outlook" in differ:
        # Where one knows less, it never promises the better case.
        less, why = (view, "is newer than the last reload") if view["restart_outlook"] == "unknown" else (
            faces.status, "has changed since the server")
        assert less["restart_outlook"] == "unknown" and less["verdict"] != "ok"
        assert any(why in note for note in less["notes"])
    if not differ:
        assert faces.alerts == faces.sidecar_alerts


def assert_worker_agrees(server: Cluster, view: Row, findings: Any, log_from: int) -> None:
    """Its last record is of the view's state, and its last warnings are of the threats that there are."""
    def recorded() -> Row:
        return server.sql("SELECT * FROM hugepage_history")[-1]

    def warned() -> set[str]:
        warnings = [message.text for message in messages(server.log()[log_from:]) if message.level == "WARNING"]
        return {threat for threat in THREATS if any(warning.endswith(f"[{threat}]") for warning in warnings)}

    until("a record of this state", lambda: all(recorded()[column] == view[column] for column in RECORDED))
    until("the warnings of this state", lambda: warned() >= findings & THREATS)
    is_lost = any("regressed" in message.text for message in messages(server.log()[log_from:]))
    assert is_lost == ("regressed" in findings)


def test_a_history_that_the_sidecar_may_not_read(world: World, tmp_path: Path) -> None:
    """An ordinary user is told that more is known, instead of being told that nothing was lost."""
    world.start().resize(0)
    assert world.server.crash()
    tmp_path.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    answer = sidecar.run("status", "--format", "json", "--state-dir", tmp_path, user="nobody").json()
    row, = (row for row in answer["instances"] if row["pid"] == world.server.postmaster)
    assert any("pg_hugepages.history" in note and "run this as root" in note for note in row["notes"]), row["notes"]
    assert row["verdict"] != "ok"


def test_the_history_of_another_server_is_not_its_own(world: World, tmp_path: Path) -> None:
    """A record of an earlier start, or of the server that this one is a copy of, says nothing of this start."""
    pool = world.start()
    pool.resize(0)
    assert world.server.crash()

    def findings() -> set[str]:
        text = sidecar.run("metrics", "--state-dir", tmp_path).stdout
        return of_metrics(samples(text), world.server.data)["findings"].keys()

    assert "regressed" in findings()
    kept = world.server.data / "pg_hugepages.history"
    whole = kept.read_bytes()
    kept.write_bytes(b"".join(whole.splitlines(keepends=True)[:1]))
    assert "regressed" not in findings()
    kept.write_bytes(whole)
    world.server.conf(**{"pg_hugepages.history_size": 0})
    world.server.restart()
    assert "regressed" not in findings()
