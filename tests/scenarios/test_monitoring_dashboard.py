"""The Grafana dashboard: made by Grafana's own model, and every query of it has data in the real Prometheus."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from harness.poll import until
from harness.preloaded import PRELOADED
from harness.processes import CommandFailed, run
from harness.prometheus import MONITORING, Prometheus, exposed, postgres_exporter, prometheus
from harness.status import create_extension

pytestmark = [pytest.mark.any_major, pytest.mark.own_servers]

GRAFANA = MONITORING / "grafana"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pg_hugepages"


@pytest.fixture(scope="session")
def with_model() -> Path:
    """A Python that has Grafana's model of a dashboard, in an environment of its own."""
    place = CACHE / "grafana-foundation-sdk"
    program = place / "bin" / "python"
    wanted = (GRAFANA / "requirements.txt").read_text()
    stamp = place / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        try:
            run("/usr/bin/python3", "-m", "venv", "--clear", str(place))
            run(str(place / "bin" / "pip"), "install", "-q", "-r", str(GRAFANA / "requirements.txt"))
        except CommandFailed as error:
            pytest.fail(f"grafana-foundation-sdk cannot be had: {error}")
        stamp.write_text(wanted)
    return program


def test_made_by_grafanas_model(with_model):
    run(with_model, str(GRAFANA / "dashboard.py"), "--check")


def data(watcher: Prometheus, panel: dict, target: dict, variables: dict[str, str]) -> list:
    """What a query of a panel yields."""
    expression = target["expr"]
    for name, value in variables.items():
        expression = expression.replace(f"${name}", value)
    assert "$" not in expression.replace('"$1"', ""), expression
    if target.get("instant"):
        return watcher.query(expression)
    now = time.time()
    return watcher.query(expression, start=str(now - 60), end=str(now), step="1")


def test_every_query_has_data(new_cluster):
    dashboard = json.loads((GRAFANA / "hugepages.json").read_text())
    server = create_extension(new_cluster(**PRELOADED).start())
    server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    with (postgres_exporter(server, "monitor") as exporter,
          prometheus(server.root, {"postgres_exporter": exporter}) as watcher):
        until("the first samples", lambda: watcher.query("hugepage_verdict"))
        chosen: dict[str, str] = {}
        for variable in dashboard["templating"]["list"]:
            # Nothing to type, because a query with an empty name of a label is an error.
            assert variable["type"] in ("datasource", "query")
            if variable["name"] == "label":
                assert variable["query"] == "label_names(hugepage_verdict)"
                chosen["label"] = variable["current"]["value"]
            elif variable["type"] == "query":
                wanted = variable["query"]
                for name, value in chosen.items():
                    wanted = wanted.replace(f"${name}", value)
                series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", wanted).groups()
                [found] = watcher.query(f"group by ({label}) ({series})")
                [chosen[variable["name"]]] = re.fullmatch(variable.get("regex", "").strip("/") or "(.*)", found["metric"][label]).groups()
        assert chosen == {"label": "job", "job": "postgres_exporter", "cluster": "postgres_exporter", "host": exporter.split(":")[0],
                          "name": str(server.data)}
        asked = 0
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                found = data(watcher, panel, target, chosen)
                assert found, (panel["title"], target["expr"])
                # A collector of many servers has that label.
                for label in set(re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))) - {"server"}:
                    assert all(label in each["metric"] for each in found), (panel["title"], target["legendFormat"])
                asked += 1
        assert asked > 25


SEEN = """hugepage_verdict{{kind="postgresql",name="{name}"{more}}} {verdict}
hugepage_restart_outlook{{kind="postgresql",name="{name}",hugepage_restart_outlook="hugetlb"{more}}} {hugetlb}
hugepage_restart_outlook{{kind="postgresql",name="{name}",hugepage_restart_outlook="base"{more}}} {base}
"""


def seen(name: str, verdict: int, outlook: str, server: str = "") -> str:
    """What an exporter says of a server."""
    more = f',server="{server}"' if server else ""
    return SEEN.format(name=name, verdict=verdict, more=more, hugetlb=int(outlook == "hugetlb"), base=int(outlook == "base"))


def test_a_server_is_one_row_and_has_its_next_start(tmp_path):
    """One that three exporters see is one row. Two that one collector sees, each in a directory of the same name, are two."""
    dashboard = json.loads((GRAFANA / "hugepages.json").read_text())
    [servers] = [panel for panel in dashboard["panels"] if panel["title"] == "Servers"]
    by_query = {target["refId"]: target for target in servers["targets"]}
    chosen = {"label": "job", "job": ".*", "cluster": ".*"}
    of_collector = seen("/pg", 1, "hugetlb", "/run:5432") + seen("/data", 1, "base", "db1:5432") + seen("/data", 3, "hugetlb", "db2:5432")
    with (exposed(seen("/pg", 2, "hugetlb")) as node, exposed(of_collector) as collector, exposed(seen("/pg", 0, "hugetlb")) as other,
          prometheus(tmp_path, {"node": node, "postgres_exporter": collector, "pgwatch": other}) as watcher):
        until("samples", lambda: len(watcher.query("hugepage_verdict")) == 5)
        verdicts = {(each["metric"]["name"], each["metric"].get("server")): each["value"][1] for each in data(watcher, servers, by_query["A"], chosen)}
        assert verdicts == {("/pg", None): "2", ("/data", "db1:5432"): "1", ("/data", "db2:5432"): "3"}
        starts = {(each["metric"]["name"], each["metric"].get("server")): each["metric"]["hugepage_restart_outlook"]
                  for each in data(watcher, servers, by_query["G"], chosen)}
        assert starts == {("/pg", None): "hugetlb", ("/data", "db1:5432"): "base", ("/data", "db2:5432"): "hugetlb"}
        [counted] = [panel for panel in dashboard["panels"] if panel["title"] == "Servers by verdict"]
        assert [data(watcher, counted, target, chosen)[0]["value"][1] for target in counted["targets"]] == ["0", "1", "1", "1"]
        # The link of a row selects that server, as the panels below ask for it.
        [link] = [item for override in servers["fieldConfig"]["overrides"] for item in override["properties"] if item["id"] == "links"]
        assert re.findall(r"&var-(\w+)=\$\{__data\.fields\.(\w+)\}", link["value"][0]["url"]) == [("host", "host"), ("name", "name")]
        assert f"/d/{dashboard['uid']}?" in link["value"][0]["url"]
        [verdict] = [panel for panel in dashboard["panels"] if panel["title"] == "Verdict"]
        for name, values in (("/pg", {"2"}), ("/data", {"1", "3"})):
            found = data(watcher, verdict, verdict["targets"][0], {"job": ".*", "host": "127.0.0.1", "name": name})
            assert {each["value"][1] for each in found} == values
