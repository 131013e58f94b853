"""The alerts of a live cluster, seen through Prometheus: what goes on and off, and in what order."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from harness.cluster import Cluster
from harness.poll import until
from harness.preloaded import PRELOADED
from harness.prometheus import Prometheus, Textfile, free_port, node_exporter, postgres_exporter, prometheus, sql_exporter
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.any_major


class Watch:
    """Prometheus over one server, by postgres_exporter and by the text that a timer has the sidecar write."""

    def __init__(self, watcher: Prometheus, textfile: Textfile) -> None:
        self.watcher, self.textfile = watcher, textfile

    def await_alerts(self, *alerts: str) -> None:
        """Wait until these alerts fire, and no others, whichever way it is scraped."""
        def are_firing() -> bool:
            if self.textfile.cluster.ready():
                self.textfile.write()
            return self.watcher.firing("postgres_exporter") == self.watcher.firing("node") == set(alerts)
        try:
            until(f"the alerts {alerts}", are_firing)
        except TimeoutError as error:
            raise AssertionError([self.watcher.firing(job) for job in ("postgres_exporter", "node")]) from error

    def samples(self, expression: str) -> bool:
        """Whether both ways have such a sample."""
        return {each["metric"]["job"] for each in self.watcher.query(expression)} == {"postgres_exporter", "node"}


@pytest.fixture(scope="module")
def watch(tmp_path_factory) -> Iterator[Callable[[Cluster], AbstractContextManager[Watch]]]:
    """Watches a running server with the extension. Prometheus takes 5 s to find its targets, so that all tests share one."""
    ports = {job: free_port() for job in ("postgres_exporter", "node")}
    addresses = {job: f"127.0.0.1:{port}" for job, port in ports.items()}
    with prometheus(tmp_path_factory.mktemp("alerts"), addresses) as watcher:
        @contextmanager
        def watch(server: Cluster) -> Iterator[Watch]:
            server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
            with ExitStack() as services:
                textfile = Textfile(server, Path(services.enter_context(TemporaryDirectory(prefix="pg_hugepages-textfile-"))))
                textfile.write()
                watching = Watch(watcher, textfile)
                services.enter_context(postgres_exporter(server, "monitor", ports["postgres_exporter"]))
                services.enter_context(node_exporter(textfile, ports["node"]))
                until("the first samples", lambda: watching.samples("hugepage_verdict"))
                yield watching
            until("scrapes without an answer", lambda: not watcher.query("hugepage_verdict"))
            watcher.forget()
            until("the end of its alerts", lambda: not any(map(watcher.firing, ports)))
        yield watch


@pytest.mark.parametrize("settings", [PRELOADED, {}], ids=["preloaded", "not preloaded"])
def test_pool_shrunk_then_crash(new_cluster, pool, watch, settings):
    """First the warning of what would be lost, then of what is; each ends with its reason, and in that order."""
    server = new_cluster(**settings)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    with watch(server) as watched:
        watched.await_alerts()
        borrowed.resize(0)
        watched.await_alerts("HugepagesLostAtNextRestart")
        assert server.crash()
        watched.await_alerts("HugepagesLost")
        borrowed.resize(needed)
        # The pool is there again, but the server is not in it before it starts anew.
        until("the outlook", lambda: watched.textfile.write() or watched.samples(
            "hugepage_restart_outlook{hugepage_restart_outlook='hugetlb'} == 1"))
        watched.await_alerts("HugepagesLost")
        server.restart()
        watched.await_alerts()
        for job in ("postgres_exporter", "node"):
            steps = watched.watcher.history(job)
            assert [step for step in steps if step[0] == "on"] == [
                ("on", "HugepagesLostAtNextRestart"), ("on", "HugepagesLost")], steps
            assert [step for step in steps if step[0] == "off"] == [
                ("off", "HugepagesLostAtNextRestart"), ("off", "HugepagesLost")], steps


def test_next_start_fails(new_cluster, pool, watch):
    """With huge_pages = on a crash takes the server away, and monitoring said so before."""
    server = new_cluster(huge_pages=True)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    create_extension(server.start())
    with watch(server) as watched:
        watched.await_alerts()
        borrowed.resize(0)
        watched.await_alerts("HugepagesNextStartFails")
        assert not server.crash()


def test_cgroup_below_segment(new_cluster, pool, cgroup, watch):
    server, group = new_cluster(), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed)
    create_extension(server.start(within=group))
    with watch(server) as watched:
        watched.await_alerts()
        group.limit(2 * MB, max=(needed - 1) * 2 * MB)
        watched.await_alerts("HugepagesCgroupLimit")
        group.limit(2 * MB, max=needed * 2 * MB)
        watched.await_alerts()


def test_pool_wasted(new_cluster, pool, watch):
    server = new_cluster()
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    with watch(server) as watched:
        watched.await_alerts()
        borrowed.resize(borrowed.persistent() + needed)
        watched.await_alerts("HugepagesPoolWasted")
        borrowed.resize(borrowed.persistent() - needed)
        watched.await_alerts()


def test_base_pages_though_asked_for(new_cluster, pool, watch):
    """From 1 GB of shared memory on."""
    server = new_cluster(shared_buffers="1GB")
    pool(2 * MB, 0)
    create_extension(server.start())
    with watch(server) as watched:
        watched.await_alerts("HugepagesNotUsed")
        server.conf(shared_buffers="128MB")
        server.restart()
        watched.await_alerts()


HOSTS = {"one": "127.0.0.2", "other": "127.0.0.3"}

SAME_DIRECTORY = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
"""Runs the rest with one directory at the place of another."""


@pytest.mark.parametrize(("way", "is_same"), [("postgres_exporter", True), ("postgres_exporter", False), ("sql_exporter", True), ("node", False)])
def test_one_collector_of_two_servers(new_cluster, pool, tmp_path, way, is_same):
    """Each server has its own alert with its own number, even if both call their data directory the same, as in two containers."""
    one, other = new_cluster(), new_cluster(shared_buffers="256MB")
    servers = {"one": one, "other": other}
    for name, server in servers.items():
        server.conf(listen_addresses=HOSTS[name] if way == "sql_exporter" else "")
    needed = one.pages_needed(2 * MB) + other.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(one.start())
    through = []
    if is_same:
        other.conf(data_directory=one.data)
        through = ["unshare", "--mount", "sh", "-c", SAME_DIRECTORY, "sh", str(other.data), str(one.data)]
    create_extension(other.start(through=through))
    for server in servers.values():
        server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    with ExitStack() as services:
        textfile = Textfile(one, tmp_path)
        textfile.write()
        address = services.enter_context({
            "node": lambda: node_exporter(textfile),
            "postgres_exporter": lambda: postgres_exporter(one, "monitor", others=[other]),
            "sql_exporter": lambda: sql_exporter(one, "monitor", HOSTS.values())}[way]())
        watcher = services.enter_context(prometheus(one.root, {way: address}))

        def alerts() -> dict[tuple[str, str], str]:
            """By server and name; one of the pool is of each server that it names."""
            if way == "node":
                textfile.write()
            found = {}
            for alert in watcher.alerts(way):
                text = json.dumps([alert["labels"], alert["annotations"]["description"]])
                place = alert["labels"].get("server") or text
                named = [name for name, server in servers.items() if (HOSTS[name] if way == "sql_exporter" else str(server.root)) in place]
                assert len(named) == 1 or way == "node", alert
                found.update({(name, alert["labels"]["alertname"]): alert["annotations"]["description"] for name in named})
            return {key: text for key, text in found.items() if key[1] != "HugepagesLostAtNextBoot"}

        def await_alerts(*expected: tuple[str, str]) -> dict[tuple[str, str], str]:
            try:
                until(f"the alerts {expected}", lambda: set(expected) == alerts().keys())
            except TimeoutError as error:
                raise AssertionError(alerts()) from error
            return alerts()

        until("samples", lambda: len(watcher.query("hugepage_verdict")) >= 2)
        borrowed.resize(0)
        await_alerts(("one", "HugepagesLostAtNextRestart"), ("other", "HugepagesLostAtNextRestart"))
        assert other.crash()
        found = await_alerts(("one", "HugepagesLostAtNextRestart"), ("other", "HugepagesLost"))
        if way != "node":    # which sees other servers of the host besides
            [row] = one.sql("SELECT recommended_nr_hugepages AS pages FROM hugepage_status")
            assert f"Recommended are {row['pages']} pages." in found["one", "HugepagesLostAtNextRestart"]
        [row] = other.sql("SELECT pages_missing AS pages FROM hugepage_status")
        assert f"{row['pages']} of its huge pages are missing." in found["other", "HugepagesLost"]
        borrowed.resize(needed)
        other.stop()
        other.start(through=through)
        await_alerts()
