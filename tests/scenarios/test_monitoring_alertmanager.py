"""From a lost pool to a person's mail: Prometheus, the exporters, and Alertmanager with the example of monitoring/."""

import json
from contextlib import ExitStack

import pytest
import yaml

from harness.poll import until
from harness.preloaded import PRELOADED
from harness.processes import run
from harness.prometheus import (MONITORING, Textfile, alertmanager, get, node_exporter, postgres_exporter, prometheus, sql_exporter)
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.any_major

EXAMPLE = MONITORING / "prometheus/alertmanager.yml"


@pytest.mark.no_server
def test_the_example_is_one_that_alertmanager_takes():
    assert "SUCCESS" in run("amtool", "check-config", str(EXAMPLE))


@pytest.mark.no_server
@pytest.mark.parametrize(("severity", "receiver"), [("critical", "pager"), ("warning", "mail"), ("info", "mail")])
def test_each_severity_has_its_receiver(severity, receiver):
    found = run("amtool", "config", "routes", "test", "--config.file", str(EXAMPLE), "alertname=HugepagesLost", f"severity={severity}")
    assert found.split() == [receiver]


@pytest.mark.no_server
def test_the_inhibited_jobs_are_those_of_prometheus_yml():
    jobs = {job["job_name"] for job in yaml.safe_load((MONITORING / "prometheus/prometheus.yml").read_text())["scrape_configs"]}
    rules = yaml.safe_load(EXAMPLE.read_text())["inhibit_rules"]
    named = {job for rule in rules for matcher in (*rule["source_matchers"], *rule["target_matchers"]) if matcher.startswith("job")
             for job in matcher.split('"')[1].split("|")}
    assert named == jobs


def test_three_jobs_see_one_server_and_a_person_gets_one_mail(new_cluster, pool, tmp_path):
    """The mail names host, server and number; when the server is in huge pages again, the next mail says so. It takes 20 s, because
    Alertmanager looks only every few seconds."""
    server = new_cluster(**PRELOADED)
    needed = server.pages_needed(2 * MB)
    borrowed = pool(2 * MB, needed)
    create_extension(server.start())
    server.sql("CREATE ROLE monitor LOGIN IN ROLE pg_monitor")
    textfile = Textfile(server, tmp_path)
    textfile.write()
    with ExitStack() as services:
        targets = {"postgres_exporter": services.enter_context(postgres_exporter(server, "monitor")),
                   "sql_exporter": services.enter_context(sql_exporter(server, "monitor")),
                   "node": services.enter_context(node_exporter(textfile))}
        address, mailbox = services.enter_context(alertmanager(tmp_path, group_wait="5s"))
        watcher = services.enter_context(prometheus(server.root, targets, alertmanager=address))
        until("samples of all", lambda: len(watcher.query("hugepage_verdict")) == 3)
        borrowed.resize(0)
        assert server.crash()
        textfile.write()
        [row] = server.sql("SELECT pages_missing FROM hugepage_status")

        def lost(state: str) -> list[dict]:
            alerts = json.loads(get(f"http://{address}/api/v2/alerts", filter='alertname="HugepagesLost"'))
            return [alert for alert in alerts if alert["status"]["state"] == state]

        until("the alert of every job", lambda: (len(lost("active")), len(lost("suppressed"))) == (1, 2))
        [alert] = lost("active")
        assert (alert["labels"]["job"], alert["labels"]["host"], alert["labels"]["name"]) == ("node", "127.0.0.1", str(server.data))

        def mails(subject: str) -> list[str]:
            found = [mail for mail in mailbox.mails if subject in mail["Subject"] and "HugepagesLost " in mail["Subject"]]
            return [mail.get_body(("html",)).get_content() for mail in found]

        until("the mail", lambda: mails("[FIRING:1]"))
        [text] = mails("FIRING")
        assert f"{row['pages_missing']} of its huge pages are missing." in text and str(server.data) in text
        borrowed.resize(needed)
        server.restart()
        # With the textfile's alert gone first, the other two would be inhibited no longer while they still fire.
        until("the end of the others", lambda: not lost("suppressed"))
        textfile.write()
        until("the mail of the end", lambda: mails("[RESOLVED]"))
        assert len(mails("FIRING")) == 1
