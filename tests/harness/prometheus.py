"""Debian's Prometheus and its exporters, each on its own port for the length of a block."""

import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from harness import sidecar
from harness.cluster import Cluster, rows
from harness.poll import until
from harness.processes import run

MONITORING = Path(__file__).resolve().parents[2] / "monitoring"
sys.path.insert(0, str(MONITORING / "exporters"))

import queries

INTERVAL = "500ms"
"""The interval at which the tests' Prometheus scrapes and evaluates rules."""

GAP = 2.5
"""Seconds without a sample after which an alert counts as resolved."""

LABEL = re.compile(r'(\w+)=(?=")')


def free_port() -> int:
    """A TCP port of this host without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url: str, **parameters: str) -> str:
    """The body of the response."""
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    with urllib.request.urlopen(url + query, timeout=30) as answer:
        return answer.read().decode()


@contextmanager
def service(*command: str | Path, url: str, log: Path, env: dict[str, str] | None = None,
            cwd: Path | None = None) -> Iterator[None]:
    """Run a program that serves `url`; the block begins when it responds there, and ends it."""
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=cwd,
                                   env={**os.environ, **(env or {})})
    try:
        until(f"{Path(command[0]).name} to answer", lambda: _answers(url) or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        return bool(get(url))
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


@contextmanager
def postgres_exporter(cluster: Cluster, user: str, port: int | None = None, others: Sequence[Cluster] = ()) -> Iterator[str]:
    """prometheus-postgres-exporter on a cluster and others, with only the project's queries; its address."""
    address = f"127.0.0.1:{port or free_port()}"
    source = ",".join(f"user={user} host={each.root} port=5432 dbname=postgres sslmode=disable" for each in (cluster, *others))
    with service("prometheus-postgres-exporter", f"--web.listen-address={address}", "--disable-default-metrics",
                 "--disable-settings-metrics", "--no-collector.database", "--no-collector.bgwriter",
                 f"--extend.query-path={MONITORING}/exporters/postgres_exporter.yaml",
                 url=f"http://{address}/metrics", log=cluster.root / "postgres_exporter.log",
                 env={"DATA_SOURCE_NAME": source}):
        yield address


@contextmanager
def sql_exporter(cluster: Cluster, user: str, hosts: Sequence[str] = ()) -> Iterator[str]:
    """prometheus-sql-exporter on a cluster with the project's configuration, except for connection and interval; its address.

    With `hosts` it connects to the servers at these addresses. Of servers by sockets it would not tell one from the other.
    """
    address = f"127.0.0.1:{free_port()}"
    config = yaml.safe_load((MONITORING / "exporters/sql_exporter.yml").read_text())
    for job in config["jobs"]:
        job["interval"] = "1s"
        job["connections"] = [f"postgres://{user}@{host}:5432/postgres?sslmode=disable" for host in hosts] or [
            f"postgres://{user}@/postgres?host={cluster.root}&port=5432&sslmode=disable"]
    config_file = cluster.root / "sql_exporter.yml"
    config_file.write_text(yaml.safe_dump(config))
    with service("prometheus-sql-exporter", f"-web.listen-address={address}", f"-config.file={config_file}",
                 url=f"http://{address}/metrics", log=cluster.root / "sql_exporter.log"):
        yield address


@contextmanager
def pgwatch(cluster: Cluster, user: str) -> Iterator[str]:
    """pgwatch on a cluster with its own metrics and the project's, in one directory as docs/monitoring.md says; its address."""
    address = f"127.0.0.1:{free_port()}"
    metrics = cluster.root / "pgwatch"
    metrics.mkdir()
    (metrics / "metrics.yaml").write_text(run("pgwatch", "metric", "list"))
    preset = yaml.safe_load((MONITORING / "exporters/pgwatch.yaml").read_text())
    preset["presets"]["hugepages"]["metrics"] = dict.fromkeys(preset["metrics"], 1)
    (metrics / "pgwatch.yaml").write_text(yaml.safe_dump(preset))
    source = {"name": "trial", "conn_str": f"postgresql://{user}@/postgres?host={cluster.root}&port=5432&sslmode=disable",
              "kind": "postgres", "preset_metrics": "hugepages", "custom_metrics": {"db_size": 1}, "is_enabled": True}
    sources = cluster.root / "pgwatch-sources.yaml"
    sources.write_text(yaml.safe_dump([source]))
    with service("pgwatch", f"--sources={sources}", f"--metrics={metrics}", f"--sink=prometheus://{address}", "--web-disable",
                 url=f"http://{address}/metrics", log=cluster.root / "pgwatch.log"):
        yield address


class Textfile:
    """Writes the sidecar's metrics to the directory of node_exporter's textfile collector, as a timer would. Below the directory
    of the server's user the sidecar writes nothing."""

    def __init__(self, cluster: Cluster, parent: Path) -> None:
        self.cluster = cluster
        self.directory = parent / "textfile"
        self.directory.mkdir()

    def write(self) -> None:
        """Write the file once; what is recorded of the server is in its own history."""
        state = self.directory.parent / "state"
        written = sidecar.run("metrics", "--textfile", self.directory / "hugepages.prom", "--state-dir", state)
        assert written.status == sidecar.OK, written


@contextmanager
def node_exporter(textfile: Textfile, port: int | None = None) -> Iterator[str]:
    """prometheus-node-exporter with only its textfile collector; its address."""
    address = f"127.0.0.1:{port or free_port()}"
    with service("prometheus-node-exporter", f"--web.listen-address={address}", "--collector.disable-defaults",
                 "--collector.textfile", f"--collector.textfile.directory={textfile.directory}",
                 url=f"http://{address}/metrics", log=textfile.directory.parent / "node_exporter.log"):
        yield address


@dataclass
class Prometheus:
    """A running Prometheus, queried by its HTTP API."""

    url: str

    def query(self, expression: str, **parameters: str) -> list[dict[str, Any]]:
        """The result of an expression: a vector, or with start, end and step a matrix."""
        kind = "query_range" if "start" in parameters else "query"
        answer = json.loads(get(f"{self.url}/api/v1/{kind}", query=expression, **parameters))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def firing(self, job: str) -> set[str]:
        """The names of the alerts that fire for the targets of a job."""
        return {alert["labels"]["alertname"] for alert in self.alerts(job)}

    def alerts(self, job: str) -> list[dict[str, Any]]:
        """The alerts that fire for the targets of a job, with labels and annotations."""
        alerts = json.loads(get(f"{self.url}/api/v1/alerts"))["data"]["alerts"]
        return [alert for alert in alerts if alert["state"] == "firing" and alert["labels"].get("job") == job]

    def forget(self) -> None:
        """Delete all samples."""
        matching = urllib.parse.urlencode({"match[]": "{__name__=~'.+'}"})
        urllib.request.urlopen(f"{self.url}/api/v1/admin/tsdb/delete_series", data=matching.encode(), timeout=30).close()

    def history(self, job: str) -> list[tuple[str, str]]:
        """When the alerts of a job fired and ended, oldest first: `on` or `off`, each with the alert's name."""
        names = self.query("count by (alertname) (max_over_time(ALERTS{alertstate='firing', job='%s'}[1h]))" % job)
        steps = []
        for name in [each["metric"]["alertname"] for each in names]:
            selector = "ALERTS{alertstate='firing', job='%s', alertname='%s'}[1h]" % (job, name)
            [series] = self.query(selector)
            times = [float(time) for time, _ in series["values"]]
            runs = [0, *(at for at in range(1, len(times)) if times[at] - times[at - 1] > GAP)]
            for number, first in enumerate(runs):
                last = (runs[number + 1] if number + 1 < len(runs) else len(times)) - 1
                steps += [(times[first], "on", name), (times[last] + GAP / 2, "off", name)]
        return [(what, name) for _time, what, name in sorted(steps)]


@contextmanager
def prometheus(directory: Path, targets: dict[str, str], hold: str = "0s", alertmanager: str = "") -> Iterator[Prometheus]:
    """Prometheus with the project's alerts, and with its scrape jobs for these targets, by the job's name.

    `hold` replaces the `for` of every alert, so that no test waits an hour. `alertmanager` is the address that gets the alerts.
    """
    rules = yaml.safe_load((MONITORING / "prometheus/alerts.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["for"] = hold
    config = yaml.safe_load((MONITORING / "prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL}
    config["scrape_configs"] = [job for job in config["scrape_configs"] if job["job_name"] in targets]
    assert len(config["scrape_configs"]) == len(targets)
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
    config["alerting"]["alertmanagers"] = [{"static_configs": [{"targets": [alertmanager] if alertmanager else []}]}]
    home = directory / "prometheus"
    home.mkdir()
    (home / "alerts.yaml").write_text(yaml.safe_dump(rules))
    (home / "prometheus.yml").write_text(yaml.safe_dump(config))
    url = f"http://127.0.0.1:{free_port()}"
    with service("prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
                 f"--web.listen-address={url.removeprefix('http://')}", "--log.level=warn",
                 "--web.console.templates=/nonexistent", "--web.enable-admin-api", url=f"{url}/-/ready", log=home / "log"):
        yield Prometheus(url)


class Mailbox(socketserver.ThreadingTCPServer):
    """Takes mail by SMTP (RFC 5321), and keeps the text of each message."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        super().__init__(("127.0.0.1", 0), Delivery)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Delivery(socketserver.StreamRequestHandler):
    """One connection to a mailbox."""

    def handle(self) -> None:
        self.say("220 mailbox")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            self.say({b"DATA": "354 go on", b"QUIT": "221 bye"}.get(verb, "250 mailbox"))
            if verb == b"DATA":
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.mails.append(message_from_bytes(text, policy=policy.default))
                self.say("250 kept")

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def alertmanager(directory: Path, group_wait: str) -> Iterator[tuple[str, Mailbox]]:
    """Alertmanager with the project's example, except for mail server and waiting; its address, and the mails that it has sent."""
    config = yaml.safe_load((MONITORING / "prometheus/alertmanager.yml").read_text())
    address = f"127.0.0.1:{free_port()}"
    with Mailbox() as mailbox:
        threading.Thread(target=mailbox.serve_forever, daemon=True).start()
        config["global"]["smtp_smarthost"] = mailbox.address
        config["route"] |= {"group_wait": group_wait, "group_interval": "1s"}
        (directory / "alertmanager.yml").write_text(yaml.safe_dump(config))
        with service("prometheus-alertmanager", f"--config.file={directory}/alertmanager.yml", f"--web.listen-address={address}",
                     f"--storage.path={directory}/alertmanager", "--cluster.listen-address=", url=f"http://{address}/-/ready",
                     log=directory / "alertmanager.log"):
            yield address, mailbox
        mailbox.shutdown()


@contextmanager
def exposed(text: str) -> Iterator[str]:
    """An exporter with this text; its address."""
    class Exposition(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Exposition) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by name and labels."""


def queried(session: Any) -> Samples:
    """The samples that an exporter makes of the project's queries."""
    found = {}
    for query in queries.QUERIES:
        for row in rows(session, query.sql):
            labels = frozenset((label, row[label]) for label in query.labels)
            values = {name: row[name] for name in query.values if row[name] is not None}
            found.update({(f"{query.name}_{name}", labels): float(value) for name, value in values.items()})
    return found


def samples(text: str, without: Sequence[str] = ()) -> Samples:
    """Samples of the text format by name and labels, except the labels in `without`; NaN is left out."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        series, value = line.rsplit(" ", 1)
        name, _, labels = series.partition("{")
        pairs = json.loads("{" + LABEL.sub(r'"\1":', labels.removesuffix("}")) + "}") if labels else {}
        if value != "NaN":
            key = (name, frozenset(pair for pair in pairs.items() if pair[0] not in without))
            assert key not in found, key
            found[key] = float(value)
    return found


def described(text: str) -> dict[str, tuple[str, str]]:
    """HELP and TYPE of each metric of the text format."""
    help_of, type_of = {}, {}
    for line in text.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            name, words = line[7:].split(" ", 1)
            (help_of if line.startswith("# HELP") else type_of)[name] = words
    return {name: (help_of[name], type_of[name]) for name in type_of}
