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
from harness.prometheus import MONITORING, Prometheus, postgres_exporter, prometheus
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
            if variable["type"] == "textbox":
                chosen[variable["name"]] = variable["query"]
            if variable["type"] == "query":
                wanted = variable["query"]
                for name, value in chosen.items():
                    wanted = wanted.replace(f"${name}", value)
                series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", wanted).groups()
                [found] = watcher.query(f"group by ({label}) ({series})")
                chosen[variable["name"]] = found["metric"][label]
        assert chosen == {"label": "job", "job": "postgres_exporter", "cluster": "postgres_exporter", "instance": exporter,
                          "name": str(server.data)}
        asked = 0
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                found = data(watcher, panel, target, chosen)
                assert found, (panel["title"], target["expr"])
                for label in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
                    assert all(label in each["metric"] for each in found), (panel["title"], target["legendFormat"])
                asked += 1
        assert asked > 25
