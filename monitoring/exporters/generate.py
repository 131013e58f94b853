#!/usr/bin/python3
"""Writes the configuration of each exporter from queries.py; with --check, checks that the files are up to date.

Needs Debian's python3-yaml.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from queries import QUERIES, Query

HERE = Path(__file__).resolve().parent

HEADS = {
    "postgres_exporter.yaml": """\
# Huge pages for prometheus-postgres-exporter: --extend.query-path=postgres_exporter.yaml
# Its role needs pg_monitor, and the database that it connects to needs the extension.
# Made by generate.py from queries.py.
""",
    "sql_exporter.yml": """\
# Huge pages for prometheus-sql-exporter: -config.file=sql_exporter.yml
# Set the connections; the role needs pg_monitor, and the database needs the extension. It names a metric
# sql_<query>{col="<column>"}; the relabelling in ../prometheus/prometheus.yml gives it the name that all others have.
# Made by generate.py from queries.py.
""",
    "cloudnative-pg.yaml": """\
# Huge pages for the exporter of CloudNativePG, whose metrics get cnpg_ in front: kubectl apply -n NAMESPACE -f, and in the Cluster
#   spec: {monitoring: {customQueriesConfigMap: [{name: hugepages, key: queries}]}}
# The database of the queries needs the extension: that of bootstrap.initdb, or postgres without it.
# Made by generate.py from queries.py.
""",
    "pgwatch.yaml": """\
# Huge pages for pgwatch, as metrics and a preset: pgwatch --metrics=DIRECTORY, with this file and pgwatch's own metrics in the
# directory (pgwatch metric list >DIRECTORY/metrics.yaml), as a single file would replace them all. Its Prometheus sink puts
# pgwatch_ before each name: see ../prometheus/prometheus.yml. Its role needs pg_monitor, and the monitored database needs the
# extension.
# Made by generate.py from queries.py.
""",
}


def outer(query: Query, columns: list[str]) -> str:
    """A query that selects these columns from `query`."""
    inner = "".join(f"    {line}\n" for line in query.sql.splitlines())
    return "SELECT " + ",\n       ".join(columns) + f"\nFROM (\n{inner}) AS q\n"


def postgres_exporter() -> Any:
    """A map of queries, each with its columns."""
    def metrics(query: Query) -> list[Any]:
        labels = [{name: {"usage": "LABEL", "description": name}} for name in query.labels]
        return labels + [{name: {"usage": "GAUGE" if name in query.gauges else "COUNTER", "description": text}}
                         for name, text in query.values.items()]
    return {query.name: {"query": query.sql, "metrics": metrics(query)} for query in QUERIES}


def cloudnative_pg() -> Any:
    """A ConfigMap with the map of queries as text, which the operator loads again when it changes."""
    queries = yaml.dump(postgres_exporter(), Dumper=Dumper, sort_keys=False, width=120)
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "hugepages", "labels": {"cnpg.io/reload": ""}}, "data": {"queries": queries}}


def sql_exporter() -> Any:
    """Two jobs, because the query of all backends runs less often. sql_exporter needs numbers: NaN for NULL."""
    def queries(each_backend: bool) -> list[Any]:
        return [{
            "name": query.name,
            "help": " ".join(query.values.values()) if len(query.values) == 1 else f"Columns of {query.name}.",
            "labels": list(query.labels),
            "values": list(query.values),
            "query": outer(query, [*query.labels, *(f"coalesce(\"{name}\"::float8, 'NaN') AS \"{name}\""
                                                    for name in query.values)]),
            "allow_zero_rows": True,
        } for query in QUERIES if query.each_backend == each_backend]
    connections = ["postgres://monitor@localhost:5432/postgres?sslmode=disable"]
    return {"jobs": [
        {"name": "hugepages", "interval": "30s", "connections": connections, "queries": queries(False)},
        {"name": "hugepages_of_backends", "interval": "60s", "connections": connections, "queries": queries(True)},
    ]}


def pgwatch() -> Any:
    """Metrics by the first major version that supports them, and a preset that runs them."""
    def sql(query: Query) -> str:
        tags = [f"{name} AS tag_{name}" for name in query.labels]
        values = [f'"{name}"' for name in query.values]
        return outer(query, ["(extract(epoch FROM now()) * 1e9)::int8 AS epoch_ns", *tags, *values])
    metrics = {query.name: {"description": f"Huge pages: {', '.join(query.values)}.", "sqls": {15: sql(query)},
                            "gauges": query.gauges, "is_instance_level": True} for query in QUERIES}
    seconds = {query.name: 300 if query.each_backend else 60 for query in QUERIES}
    preset = {"description": "Huge pages, by the extension pg_hugepages.", "metrics": seconds}
    return {"metrics": metrics, "presets": {"hugepages": preset}}


MAKERS: dict[str, Callable[[], Any]] = {
    "postgres_exporter.yaml": postgres_exporter, "cloudnative-pg.yaml": cloudnative_pg, "sql_exporter.yml": sql_exporter,
    "pgwatch.yaml": pgwatch,
}


class Dumper(yaml.SafeDumper):
    """Writes SQL as block text, and no YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


Dumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(
    "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def main() -> int:
    """Exit status 1 if --check found a file that is not up to date."""
    stale = []
    for name, make in MAKERS.items():
        text = HEADS[name] + "\n" + yaml.dump(make(), Dumper=Dumper, sort_keys=False, width=120)
        path = HERE / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        print(f"run generate.py: {', '.join(stale)}", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
