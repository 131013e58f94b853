"""Writes hugepages.json, the Grafana dashboard: the fleet, one server, its history.

Needs grafana-foundation-sdk of PyPI (requirements.txt), Grafana's own model of a dashboard.
"""

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
FLEET = 'job=~"$job", $label=~"$cluster"'
HOST = 'job=~"$job", instance=~"$host(:[0-9]+)?"'
ONE = f'{HOST}, name="$name"'
HUGETLB = 'hugepage_landed_in="hugetlb"'
UID = "pg-hugepages"
MAX_ROWS = 100
"""Servers in a table, the most severe first: a browser shows no more of them at once."""


LEVELS = {"0": ("ok", "green"), "1": ("notice", "blue"), "2": ("warning", "orange"), "3": ("critical", "red")}
YES = {"0": ("no", "transparent"), "1": ("yes", "blue")}


def once(metric: str, more: str = "", labels: str = "", of: str = FLEET) -> str:
    """The metric of each server, by host and name: the most severe of what several exporters of the host say. If one collector has
    several servers of one name, as of containers, the label `server` tells them apart."""
    each = "on (job, instance, kind, name)"
    several = f"(count by (job, instance, kind, name) (hugepage_verdict{{{of}}}) > 1)"

    def by(found: str, *names: str) -> str:
        wanted = ", ".join(("host", *names, "kind", "name", *labels.split()))
        return f'max by ({wanted}) (label_replace({found}, "host", "$1", "instance", "(.*?)(:[0-9]+)?"))'
    series = f"{metric}{{{', '.join(filter(None, (more, of)))}}}"
    return f"({by(f'{series} unless {each} {several}')} or {by(f'{series} and {each} {several}', 'server')})"


def one(metric: str, labels: str = "", more: str = "") -> str:
    """The metric of the selected server."""
    return once(metric, more, labels, ONE)


def of_host(metric: str) -> str:
    """The metric of the selected host's pools; a collector of many servers has it for each."""
    return f"max by (page_size, server) ({metric}{{{HOST}}})"


def mapping(texts: dict[str, tuple[str, str]]) -> list[model.ValueMap]:
    """Text and colour for each value."""
    return [model.ValueMap(options={
        value: model.ValueMappingResult(text=text, color=color, index=int(value)) for value, (text, color) in texts.items()})]


def query(expression: str, legend: str = "", ref: str = "A") -> prometheus.Dataquery:
    """A query over the time range of the dashboard."""
    return prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref).range()


def now(expression: str, legend: str = "", ref: str = "A") -> prometheus.Dataquery:
    """A query for the current value."""
    return prometheus.Dataquery().datasource(SOURCE).expr(expression).legend_format(legend).ref_id(ref).instant()


def panel(kind: Any, title: str, width: int, height: int, *queries: prometheus.Dataquery, unit: str = "") -> Any:
    """A panel with the options of all panels."""
    made = kind.Panel().title(title).datasource(SOURCE).span(width).height(height).targets(list(queries))
    return made.unit(unit) if unit else made


def number(title: str, *queries: prometheus.Dataquery, unit: str = "", width: int = 4) -> stat.Panel:
    """A panel of large numbers."""
    made = panel(stat, title, width, 4, *queries, unit=unit)
    return made.graph_mode(kinds.BigValueGraphMode.NONE).color_mode(kinds.BigValueColorMode.BACKGROUND).thresholds(
        dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([model.Threshold(color="blue")]))


def lines(title: str, *queries: prometheus.Dataquery, unit: str) -> timeseries.Panel:
    """A panel of time series."""
    legend = common.VizLegendOptions().show_legend(True).placement(kinds.LegendPlacement.BOTTOM)
    return panel(timeseries, title, 12, 8, *queries, unit=unit).min(0).legend(legend)


def states(title: str, *queries: prometheus.Dataquery, texts: dict[str, tuple[str, str]]) -> statetimeline.Panel:
    """A panel of states over time."""
    made = panel(statetimeline, title, 12, 8, *queries).mappings(mapping(texts))
    return made.show_value(kinds.VisibilityMode.NEVER).merge_values(True)


def fleet() -> list[Any]:
    """The panels of all servers."""
    verdicts = number("Servers by verdict", *(
        now(f"count({once('hugepage_verdict')} == {value}) or vector(0)", text, chr(ord("A") + int(value)))
        for value, (text, _color) in LEVELS.items()), width=12)
    for text, color in LEVELS.values():
        verdicts.override_by_name(text, [model.DynamicConfigValue(
            id_val="color", value={"mode": "fixed", "fixedColor": color})])
    columns = {
        "Value #A": ("verdict", "hugepage_verdict"),
        "Value #B": ("shared memory", "hugepage_shared_memory_bytes"),
        "Value #C": ("page size", "hugepage_page_size_bytes"),
        "Value #D": ("pages needed", "hugepage_pages_needed"),
        "Value #E": ("missing", "hugepage_pages_missing"),
        "Value #F": ("page tables", "hugepage_page_tables_bytes"),
    }
    rows = {field[-1]: f"{once(metric)} and topk({MAX_ROWS}, {once('hugepage_verdict')})" for field, (_title, metric) in columns.items()}
    # A set of states: the label of the present one is the text.
    outlook = once("hugepage_restart_outlook", labels="hugepage_restart_outlook")
    rows["G"] = (f"({outlook} == 1) and on (host, server, kind, name) topk({MAX_ROWS}, {once('hugepage_verdict')})")
    servers = panel(table, "Servers", 24, 8, *(
        now(expression, ref=ref).format(PromQueryFormat.TABLE) for ref, expression in rows.items()))
    servers.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    servers.with_transformation(model.DataTransformerConfig(id_val="organize", options={
        "excludeByName": {"Time": True, "Value #G": True},
        "renameByName": {field: title for field, (title, _) in columns.items()} | {"hugepage_restart_outlook": "next start"}}))
    servers.override_by_name("name", [model.DynamicConfigValue(id_val="links", value=[{
        "title": "This server", "url": f"/d/{UID}?${{datasource:queryparam}}&${{job:queryparam}}"
        "&var-host=${__data.fields.host}&var-name=${__data.fields.name}"}])])
    servers.override_by_name("verdict", [
        model.DynamicConfigValue(id_val="mappings", value=mapping(LEVELS)),
        model.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"})])
    servers.override_by_regexp("shared memory|page size|page tables", [
        model.DynamicConfigValue(id_val="unit", value="bytes")])
    servers.sort_by([common.TableSortByFieldState().display_name("verdict").desc(True)])
    lost = number("In huge pages, and after the next start", now(
        f"sum({once('hugepage_landed_in', HUGETLB)})", "now", "A"), now(
        f"sum({once('hugepage_restart_outlook', HUGETLB.replace('landed_in', 'restart_outlook'))})", "after the next start", "B"), now(
        f"count({once('hugepage_verdict')})", "servers", "C"), width=12)
    return [verdicts, lost, servers]


def server() -> list[Any]:
    """The panels of the selected server."""
    return [
        number("Verdict", now(one("hugepage_verdict"), "{{server}}")).mappings(mapping(LEVELS)),
        number("Shared memory is in pages of", now(one("hugepage_page_size_bytes"), "{{server}}"), unit="bytes"),
        number("The next start lands in", now(
            f"{one('hugepage_restart_outlook', 'hugepage_restart_outlook')} == 1", "{{hugepage_restart_outlook}} {{server}}")).text_mode(
            kinds.BigValueTextMode.NAME),
        number("Pages needed, missing", now(one("hugepage_pages_needed"), "needed {{server}}", "A"),
               now(one("hugepage_pages_missing"), "missing {{server}}", "B"), width=6),
        number("Pool: recommended, now", now(one("hugepage_recommended_nr_hugepages"), "recommended {{server}}", "A"),
               now(of_host("hugepage_pool_nr_hugepages"), "{{page_size}} bytes {{server}}", "B"), width=6),
        panel(bargauge, "Findings", 12, 8, now(one("hugepage_finding_severity", "finding"), "{{finding}} {{server}}")).min(0).max(3).mappings(
            mapping(LEVELS)).orientation(kinds.VizOrientation.HORIZONTAL).thresholds(
            dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(
                [model.Threshold(color=color, value=None if value == "0" else float(value))
                 for value, (_text, color) in LEVELS.items()])),
        lines("Page tables now, and at max_connections", query(one("hugepage_page_tables_bytes"), "all processes {{server}}", "A"),
              query(one("hugepage_page_tables_max_bytes"), "the largest {{server}}", "B"),
              query(one("hugepage_page_tables_at_max_connections_bytes"), "at max_connections {{server}}", "C"), unit="bytes"),
    ]


def history() -> list[Any]:
    """The panels of the history of the selected server and its host."""
    counters = ("nr", "free", "resv", "surplus", "available")
    return [
        states("Shared memory is in", query(
            one("hugepage_landed_in", "hugepage_landed_in"), "{{hugepage_landed_in}} {{server}}"), texts=YES),
        states("The next start would land in", query(
            one("hugepage_restart_outlook", "hugepage_restart_outlook"), "{{hugepage_restart_outlook}} {{server}}"), texts=YES),
        states("Findings", query(one("hugepage_finding_severity", "finding"), "{{finding}} {{server}}"), texts=LEVELS),
        lines("Pool of the host", *(query(of_host(f"hugepage_pool_{name}_hugepages"), f"{name} ({{{{page_size}}}}) {{{{server}}}}",
                                          chr(ord("A") + at)) for at, name in enumerate(counters)), unit="short"),
    ]


def build() -> model.Dashboard:
    """The dashboard."""
    made = dashboard.Dashboard("Huge pages of PostgreSQL and Oracle").uid(UID).tags(["postgresql", "hugepages"])
    made.time("now-24h", "now").refresh("1m").timezone("browser").readonly().tooltip(model.DashboardCursorSync.CROSSHAIR)
    made.with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    # A label of one's own, such as that of a cluster or a team. It is chosen, because every query fails without a name.
    made.with_variable(dashboard.QueryVariable("label").label("Cluster label").datasource(SOURCE).query(
        "label_names(hugepage_verdict)").regex("/^(?!__name__$).+$/").refresh(model.VariableRefresh.ON_DASHBOARD_LOAD).sort(
        model.VariableSort.ALPHABETICAL_ASC).current(model.VariableOption(text="job", value="job", selected=True)))
    for name, expression in (("job", "label_values(hugepage_verdict, job)"),
                             ("cluster", 'label_values(hugepage_verdict{job=~"$job"}, $label)'),
                             ("host", f"label_values(hugepage_verdict{{{FLEET}}}, instance)"),
                             ("name", f"label_values(hugepage_verdict{{{HOST}}}, name)")):
        variable = dashboard.QueryVariable(name).label(name.capitalize()).datasource(SOURCE).query(expression).refresh(
            model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
        if name == "host":
            # Several exporters of a host have each its port.
            variable.regex("/^(.*?)(?::[0-9]+)?$/")
        if name in ("job", "cluster"):
            variable.multi(True).include_all(True).all_value(".*").current(
                model.VariableOption(text="All", value="$__all", selected=True))
        made.with_variable(variable)
    for title, panels in (("The fleet", fleet()), ("One server", server()), ("Its history", history())):
        made.with_row(dashboard.Row(title))
        for each in panels:
            made.with_panel(each)
    return made.build()


def encoded(made: model.Dashboard) -> str:
    """The dashboard as Grafana imports it."""
    return JSONEncoder(sort_keys=True, indent=2).encode(made) + "\n"


def read(text: str) -> model.Dashboard:
    """The dashboard that Grafana's types make of a text: what they do not know is not in it."""
    return model.Dashboard.from_json(json.loads(text))


def text() -> str:
    """With what Grafana's types add themselves."""
    return encoded(read(encoded(build())))


if __name__ == "__main__":
    register_default_plugins()
    target = Path(__file__).resolve().parent / "hugepages.json"
    if "--check" in sys.argv:
        kept = target.read_text()
        sys.exit(int(kept != text() or encoded(read(kept)) != kept))
    target.write_text(text())
