"""The sidecar's metrics and the queries of the exporters say the same, through the real exporters and Prometheus."""

import re
import shutil
from collections import defaultdict
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from harness import sidecar
from harness.cgroup import Cgroup
from harness.cluster import Cluster, rows
from harness.kernel import meminfo, pool_numbers
from harness.poll import until
from harness.preloaded import PRELOADED
from harness.processes import run
from harness.status import create_extension
from harness.units import MB
from harness.prometheus import (MONITORING, Prometheus, Samples, Textfile, described, get, node_exporter, pgwatch, postgres_exporter,
                                prometheus, queried, samples, sql_exporter)

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

MOVES = {"hugepage_host_page_tables_bytes", "hugepage_page_tables_processes",
         "hugepage_page_tables_bytes", "hugepage_page_tables_max_bytes", "hugepage_page_tables_saving_bytes",
         "hugepage_page_tables_at_max_connections_bytes"}
"""What changes by itself between two looks."""

ITS_OWN = {"hugepage_allocations_total", "hugepage_page_tables_at_max_connections_bytes", "hugepage_build_info"}
"""What only the server itself says."""

OF_SIDECAR = {"hugepage_build_info", "hugepage_survey_duration_seconds", "hugepage_uninspected_instances"}
"""What only the sidecar says, of itself and its survey."""

SCRAPED = {"job", "instance", "server", "host", "database", "dbname", "__name__"}
"""Labels that the exporters and Prometheus add."""


def watched(cluster: Cluster, within: Cgroup | None = None) -> Cluster:
    """The server, running with the extension, and a role that may do no more than monitor."""
    create_extension(cluster.start(within))
    cluster.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    return cluster


def of_server(found: Samples, cluster: Cluster) -> Samples:
    """What both the sidecar and the server itself say of the server and its host."""
    names = {("kind", "postgresql"), ("name", str(cluster.data))}
    return {(metric, labels): value for (metric, labels), value in found.items()
            if metric not in ITS_OWN | OF_SIDECAR and (names <= labels or not any(label == "name" for label, _ in labels))}


def labels(cluster: Cluster, **more: str) -> frozenset:
    """The labels of an instance's sample."""
    return frozenset({"kind": "postgresql", "name": str(cluster.data), **more}.items())


def scraped(watcher: Prometheus, job: str) -> dict:
    """What Prometheus has of a job now, in the form of `samples`."""
    found = watcher.query("{__name__=~'hugepage_.*', job='%s'}" % job)
    return {(each["metric"]["__name__"], frozenset((name, value) for name, value in each["metric"].items()
                                                   if name not in SCRAPED)): float(each["value"][1])
            for each in found if each["value"][1] != "NaN"}


def at_rest(found: dict) -> dict:
    """The samples that two looks have in common."""
    return {key: value for key, value in found.items() if key[0] not in MOVES}


@pytest.mark.whole_host
@pytest.mark.parametrize("landed_in", ["hugetlb", "base"])
def test_every_way_says_the_same(new_cluster, pool, cgroup, tmp_path, landed_in):
    """Names, labels, values and HELP, whether by an exporter's query or by the sidecar."""
    server, group = new_cluster(**PRELOADED), cgroup()
    needed = server.pages_needed(2 * MB)
    pool(2 * MB, needed if landed_in == "hugetlb" else needed - 1)
    group.limit(2 * MB, max=(needed + 9) * 2 * MB)
    watched(server, within=group)
    textfile = Textfile(server, tmp_path)
    textfile.write()
    text = (textfile.directory / "hugepages.prom").read_text()
    expected = of_server(samples(text), server)
    pool_of_host = ("hugepage_recommended_nr_hugepages", labels(server))
    [view] = rows(server.connect(user="monitor"), "SELECT recommended_nr_hugepages AS pages FROM hugepage_status")
    assert expected[("hugepage_landed_in", labels(server, hugepage_landed_in=landed_in))] == 1
    assert expected[("hugepage_cgroup_limit_bytes", labels(server))] == (needed + 9) * 2 * MB
    assert expected[("hugepage_pool_nr_hugepages", frozenset({("page_size", str(2 * MB))}))] == pool_numbers(2 * MB).nr
    assert expected[("hugepage_host_memory_bytes", frozenset())] == meminfo()["MemTotal"]
    with ExitStack() as services:
        targets = {
            "postgres_exporter": services.enter_context(postgres_exporter(server, "monitor")),
            "sql_exporter": services.enter_context(sql_exporter(server, "monitor")),
            "node": services.enter_context(node_exporter(textfile)),
        }
        # No package registry has the program: it is tried where it is on the PATH, as tests/tested-on.md says.
        if shutil.which("pgwatch"):
            targets["pgwatch"] = services.enter_context(pgwatch(server, "monitor"))
        watcher = services.enter_context(prometheus(server.root, targets))
        for job in targets:
            until(f"samples of {job}", lambda: len(scraped(watcher, job)) >= len(expected))
            every = scraped(watcher, job)
            seen = of_server(every, server)
            # The sidecar counts all servers of the host, which may have others than the test's.
            assert seen[pool_of_host] == (expected[pool_of_host] if job == "node" else view["pages"]) <= expected[pool_of_host], job
            seen[pool_of_host] = expected[pool_of_host]
            assert seen.keys() == expected.keys(), job
            assert at_rest(seen) == at_rest(expected), job
            own = {metric: value for (metric, _), value in every.items() if metric in ITS_OWN | OF_SIDECAR}
            assert [set(dict(found)) for (metric, found) in every if metric == "hugepage_build_info"] == [{"version"}], job
            assert own.keys() == (OF_SIDECAR if job == "node" else ITS_OWN) and own.get("hugepage_allocations_total", 1) == 1, job
        exported = described(get(f"http://{targets['postgres_exporter']}/metrics"))
    documented = {name: about for name, about in described(text).items() if name in {metric for metric, _ in expected}}
    assert {name: exported[name] for name in documented} == documented
    assert {kind for _help, kind in documented.values()} == {"gauge"}


def test_alerts_by_their_own_tests():
    run("promtool", "check", "rules", str(MONITORING / "prometheus/alerts.yaml"))
    run("promtool", "check", "config", str(MONITORING / "prometheus/prometheus.yml"))
    assert "SUCCESS" in run("promtool", "test", "rules", str(MONITORING / "prometheus/alerts_test.yaml"))
    rules = alerts()
    tests = yaml.safe_load((MONITORING / "prometheus/alerts_test.yaml").read_text())["tests"]
    checks = [check for test in tests for check in test["alert_rule_test"]]
    for rule in rules:
        alert_checks = [check["exp_alerts"] for check in checks if check["alertname"] == rule["alert"]]
        assert [] in alert_checks, f"{rule['alert']} is never tested silent"
        severity = rule["labels"]["severity"]
        assert any(each["exp_labels"]["severity"] == severity for found in alert_checks for each in found), (
            f"{rule['alert']} is never tested firing as {severity}")


OF_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|on|without|ignoring|group_left|group_right) *\([^)]*\)")


def test_alerts_with_a_prefix(tmp_path):
    """The command of docs/monitoring.md changes the name of each metric in the rules and in their tests, and nothing else: so the result of
    these tests, which take promtool 15 s, stays what it is."""
    [command] = re.findall(r"^    (sed .*) alerts.yaml >pgwatch_alerts.yaml$",
                           (MONITORING.parent / "docs/monitoring.md").read_text(), re.M)
    changed = {}
    for name in ("alerts.yaml", "alerts_test.yaml"):
        before = (MONITORING / "prometheus" / name).read_text()
        changed[name] = run("sh", "-c", f"{command} {MONITORING}/prometheus/{name}")
        assert "pgwatch_hugepage_" not in before and re.sub(r"\bpgwatch_(?=hugepage_)", "", changed[name]) == before
    rules = [rule for group in yaml.safe_load(changed["alerts.yaml"])["groups"] for rule in group["rules"]]
    series = [each["series"] for test in yaml.safe_load(changed["alerts_test.yaml"])["tests"] for each in test["input_series"]]
    # A rule's own record keeps its name.
    assert not [text for text in (*(rule["expr"] for rule in rules), *series) if re.search(r"(?<!:)\bhugepage_", OF_LABELS.sub("", text))]
    (tmp_path / "alerts.yaml").write_text(changed["alerts.yaml"])
    run("promtool", "check", "rules", str(tmp_path / "alerts.yaml"))


def test_daemonset():
    """One container that reads the node's files and cannot change them, with the arguments that the program has."""
    namespace, made = yaml.safe_load_all((MONITORING / "kubernetes/daemonset.yaml").read_text())
    assert namespace["metadata"]["name"] == made["metadata"]["namespace"]
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "privileged"}
    pod = made["spec"]["template"]
    assert made["kind"] == "DaemonSet" and made["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["spec"]["hostPID"]
    [container] = pod["spec"]["containers"]
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["spec"]["volumes"]}
    assert mounts["host"]["readOnly"] and mounts["host"]["mountPath"] == "/host"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    # The host's root is mounted in the container alone.
    arguments = ["/" if argument == "/host" else argument for argument in container["args"]]
    assert sidecar.run(*arguments, "--help").status == sidecar.OK


def alerts() -> list[dict[str, Any]]:
    """The alerts of all groups."""
    groups = yaml.safe_load((MONITORING / "prometheus/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_queries_of_cloudnative_pg():
    config_map = yaml.safe_load((MONITORING / "exporters/cloudnative-pg.yaml").read_text())
    assert (config_map["kind"], config_map["metadata"]["labels"]) == ("ConfigMap", {"cnpg.io/reload": ""})
    queries = yaml.safe_load(config_map["data"]["queries"])
    assert queries == yaml.safe_load((MONITORING / "exporters/postgres_exporter.yaml").read_text())


def test_every_alert_has_a_runbook():
    rules = alerts()
    for rule in rules:
        file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        page = (MONITORING.parent / file).read_text()
        assert anchor == rule["alert"].lower()
        assert f"### {rule['alert']}\n" in page
    delays = {"0m": "at once"}
    # Behind the delay there may be a condition.
    table = {(alert, anchor): sorted(re.findall(r"\w+ (?:at once|after \w+)", when))
             for alert, anchor, when in re.findall(r"^\| \[`(\w+)`\]\(#(\w+)\) \| (.+) \|$", page, re.M)}
    whens = defaultdict(set)
    for rule in rules:
        delay = delays.get(rule["for"], f"after {rule['for']}")
        whens[rule["alert"], rule["alert"].lower()].add(f"{rule['labels']['severity']} {delay}")
    assert table == {alert: sorted(when) for alert, when in whens.items()}


def test_files_are_made_from_the_queries():
    run("/usr/bin/python3", str(MONITORING / "exporters/generate.py"), "--check")


PGWATCH = {
    "metrics": {"sqls": dict, "init_sql": str, "node_status": str, "gauges": list, "is_instance_level": bool, "storage_name": str,
                "description": str},
    "presets": {"description": str, "metrics": dict},
}
"""What a file of pgwatch has: the fields of Metric and of Preset in its internal/metrics/types.go, 5.3.0. It ignores others silently."""


def test_pgwatch_knows_every_field():
    file = yaml.safe_load((MONITORING / "exporters/pgwatch.yaml").read_text())
    assert file.keys() == PGWATCH.keys()
    for kind, fields in PGWATCH.items():
        for name, each in file[kind].items():
            assert each and all(isinstance(value, fields.get(field, ())) for field, value in each.items()), (name, each.keys())
    for name, metric in file["metrics"].items():
        assert all(isinstance(major, int) and isinstance(sql, str) for major, sql in metric["sqls"].items()), name
        # What is no gauge is exported as a counter.
        columns = re.findall(r'^(?:SELECT|      ) "(\w+)"', next(iter(metric["sqls"].values())), re.M)
        assert columns and {name for name in columns if not name.endswith("_total")} == set(metric["gauges"]), name
    assert all(isinstance(seconds, int) for preset in file["presets"].values() for seconds in preset["metrics"].values())


def test_pgwatch(new_cluster):
    """Each metric's SQL runs for pg_monitor and has the columns that pgwatch looks for."""
    server = watched(new_cluster())
    session = server.connect(user="monitor")
    file = yaml.safe_load((MONITORING / "exporters/pgwatch.yaml").read_text())
    assert file["presets"]["hugepages"]["metrics"].keys() == file["metrics"].keys()
    for name, metric in file["metrics"].items():
        for sql in metric["sqls"].values():
            for row in rows(session, sql):
                assert row.pop("epoch_ns") > 0
                values = [value for column, value in row.items() if not column.startswith("tag_")]
                assert values and all(isinstance(value, int | None) for value in values), name


@pytest.mark.whole_host
def test_the_list_in_the_docs_is_complete(new_cluster):
    """docs/monitoring.md names every metric that there is."""
    server = watched(new_cluster(**PRELOADED))
    page = (MONITORING.parent / "docs/monitoring.md").read_text()
    found = {*described(sidecar.run("metrics").stdout), *(metric for metric, _ in queried(server.connect(user="monitor")))}
    assert found >= ITS_OWN and [name for name in found if f"`{name}" not in page] == []


def test_the_queries_of_the_docs_run(new_cluster):
    """For a role that may do no more than monitor; ending sessions takes a superuser."""
    server = watched(new_cluster(**PRELOADED))
    monitor = server.connect(user="monitor")
    pages = [page for page in (MONITORING.parent / "docs").glob("*.md") if "oracle" not in page.name]
    text = "\n".join(page.read_text() for page in (MONITORING.parent / "README.md", *pages))
    queries = re.findall(r"```sql\n(.*?)```", text, re.S) + re.findall(r"`(SELECT [^`]*\bhugepage_[^`]*)`", text)
    assert len(queries) >= 20
    for query in sorted(queries, key=lambda query: "pg_terminate_backend" in query):
        rows(server.connect() if "pg_terminate_backend" in query else monitor, query)
