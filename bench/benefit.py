"""What hugepage_benefit foretells on base pages, beside what pages of 2 MB and 1 GB then save.

Each load runs on a server in base pages while hugepage_benefit observes it, and again on servers in huge pages. What is
saved is the CPU time of the same work in base pages less that in huge pages, by the kernel's account of the processes.
Sessions that touch all of shared_buffers do it twice: the second pass has no page faults, so what it saves is the time of
address translation, which is not foretold.
"""

import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from textwrap import wrap
from typing import Any

from harness.cluster import SUPERUSER, Cluster, rows
from harness.poll import until
from harness.processes import children, cpu_of_ends, cpu_seconds, page_tables
from harness.units import GB, KB, MB
from servers import Skipped, process_ids, server

KINDS = {"base": None, "2 MB": 2 * MB, "1 GB": GB}
"""The page sizes; what the others save is foretold from the first."""

COLUMNS = {"2 MB": "huge_2mb", "1 GB": "huge_1gb"}
TOUCH = "SELECT touch_shared_buffers()"
TICKS = 100
LATE = 2.0
"""The seconds that work goes on after the observation should be over."""


class Load:
    """Work of new sessions, observed for some `seconds`; `run` does it once and returns what was measured."""

    def __init__(self, name: str, sessions: int, seconds: float, run: Callable[[Cluster, "Load", float], dict[str, float]],
                 *options: str) -> None:
        self.name, self.sessions, self.seconds, self.run, self.options = name, sessions, seconds, run, options


def touching(cluster: Cluster, load: Load, seconds: float) -> dict[str, float]:
    """New sessions touch all of shared_buffers twice, and stay until the observation is over."""
    end = time.monotonic() + seconds
    sessions = [cluster.connect() for _ in range(load.sessions)]
    pids = [session.info.backend_pid for session in sessions]
    passes = []
    for _ in range(2):
        before = [cpu_seconds(pid) for pid in pids]
        for session in sessions:
            rows(session, TOUCH)
        passes.append([cpu_seconds(pid) - begun for pid, begun in zip(pids, before)])
    first, second = passes
    if seconds and time.monotonic() > end:
        raise Skipped(f"{load.name}: the work takes longer than the {seconds:g} s of the observation")
    tables = page_tables(process_ids(cluster))
    # The second pass of the observation may be late on a busy machine.
    time.sleep(max(0.0, end + LATE - time.monotonic()) if seconds else 0)
    ends = cpu_of_ends(cluster.postmaster, sessions)
    warm_up = statistics.median(begun - again for begun, again in zip(first, second))
    return {"work": sum(first), "again": sum(second), "warm_up": warm_up, "exit": statistics.median(ends), "page_tables": tables}


def pgbench(cluster: Cluster, load: Load, seconds: float) -> dict[str, float]:
    """pgbench for longer than the observation; a unit of work is a transaction."""
    others = set(children(cluster.postmaster))
    before = cpu_of_ended(cluster.postmaster)
    output = cluster.command("pgbench", "-n", "-S", "-c", str(load.sessions), "-T", str(int(seconds + LATE)), *load.options,
                             "-h", cluster.root, "-U", SUPERUSER, "postgres")
    transactions = int(re.search(r"transactions actually processed: (\d+)", output)[1])
    # They leave pg_stat_activity before they have unmapped shared memory and the postmaster has waited for them.
    until("the sessions of pgbench to be gone", lambda: set(children(cluster.postmaster)) <= others)
    return {"work": cpu_of_ended(cluster.postmaster) - before, "units": transactions}


def cpu_of_ended(postmaster: int) -> float:
    """The CPU seconds of all children of a process that have ended (cutime and cstime of proc(5))."""
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def loads(quick: bool) -> list[Load]:
    """The four of them."""
    seconds, sessions = (6.0, 20) if quick else (60.0, 120)
    return [Load("pgbench -S", 4, seconds, pgbench), Load("pgbench -C -S", 4, seconds, pgbench, "-C"),
            Load("8 sessions scan all", 8, seconds, touching), Load(f"{sessions} sessions touch all", sessions, seconds, touching)]


def rows_of(directory: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One result for each load and each kind of huge pages.

    Base pages come last: what the kernel needs for their page tables leaves hardly a gigabyte of memory in one piece.
    """
    size = 256 * MB if quick else 4 * GB
    scale = size // (20 * MB)    # 16 MB each
    works = loads(quick)
    measured: dict[str, dict[str, dict[str, float]]] = {load.name: {} for load in works}
    for pages, page_size in reversed(KINDS.items()):
        try:
            with server(size, "huge" if page_size else "base", max(load.sessions for load in works), directory,
                        page_size=page_size) as cluster:
                cluster.command("pgbench", "-i", "-q", "-s", str(scale), "-h", cluster.root, "-U", SUPERUSER, "postgres")
                for load in works:
                    # The first session that touches memory after it was filled takes up to three times as long as the next, as
                    # any program does here. Why is not known, so that session is not measured.
                    with closing(cluster.connect()) as session:
                        rows(session, TOUCH)
                    print(f"hugepage_benefit: {pages} pages, {load.name}", file=sys.stderr)
                    if page_size:
                        measured[load.name][pages] = load.run(cluster, load, load.seconds if load.run is pgbench else 0)
                        continue
                    try:
                        measured[load.name][pages], benefit_rows = observed(cluster, load)
                    except Skipped as why:
                        yield {"pages": pages, "skipped": str(why)}
                        continue
                    for huge in COLUMNS:
                        if huge in measured[load.name]:
                            yield compared(load, huge, benefit_rows, measured[load.name])
        except Skipped as why:
            yield {"pages": pages, "skipped": str(why)}


def observed(cluster: Cluster, load: Load) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """The work, and what hugepage_benefit says of it."""
    asking = cluster.connect()
    pid = asking.info.backend_pid
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(rows, asking, f"SELECT * FROM hugepage_benefit('{load.seconds} s')")
        until("the observation to begin", lambda: answer.done() or cluster.sql(
            "SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", pid)[0]["wait_event_type"] == "Extension")
        work = load.run(cluster, load, load.seconds)
        found = {row["figure"]: row for row in answer.result()}
    asking.close()
    return work, found


def compared(load: Load, pages: str, benefit_rows: dict[str, dict[str, Any]],
             measured: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Predicted and real savings."""
    base, huge, column = measured["base"], measured[pages], COLUMNS[pages]

    def saving(figure: str) -> float:
        return benefit_rows[figure]["base"] - benefit_rows[figure][column]

    result: dict[str, Any] = {"load": load.name, "pages": pages, "confidence": benefit_rows["fault_cpu"]["confidence"],
                              "summary": benefit_rows["summary"]["detail"]}
    if "units" in base:
        each = {kind: work["work"] / work["units"] for kind, work in measured.items()}
        # The transactions of pgbench go on after the observation.
        units = base["units"] * load.seconds / int(load.seconds + LATE)
        result["cpu"] = {"of": each["base"], "predicted": saving("fault_cpu") * load.seconds / units,
                         "real": each["base"] - each[pages]}
    else:
        faults = {kind: work["work"] - work["again"] for kind, work in measured.items()}
        result["faults"] = {"of": base["work"], "predicted": saving("fault_cpu") * load.seconds,
                            "real": faults["base"] - faults[pages]}
        result["again"] = {"of": base["again"], "predicted": None, "real": base["again"] - huge["again"]}
        result["warm_up"] = {"predicted": saving("warm_up"), "real": base["warm_up"] - huge["warm_up"]}
        result["exit"] = {"predicted": saving("exit"), "real": base["exit"] - huge["exit"]}
        result["page_tables"] = {"predicted": benefit_rows["page_tables"][column], "real": huge["page_tables"]}
        result["page_tables_freed"] = {"predicted": benefit_rows["page_tables_freed"][column],
                                       "real": base["page_tables"] - huge["page_tables"]}
    return result


def table(results: list[dict[str, Any]]) -> str:
    """Predicted and real side by side, for a terminal of 80 columns."""
    lines = ["what huge pages save: predicted on base pages, and real",
             "ratio: real / predicted, the goal is 0.80 to 1.20; - if a twentieth of the CPU",
             "time is more than was predicted", "the work of pgbench is one transaction",
             f"{'load':<23}{'pages':>5}  {'figure':<22}{'predicted':>10}{'real':>10}{'ratio':>7}"]
    for result in results:
        if "skipped" in result:
            lines += wrap(f"{result['pages']} pages skipped: {result['skipped']}", 80)
        for name, unit, label in FIGURES:
            if name in result:
                lines.append(f"{result['load']:<23}{result['pages']:>5}  {line(result[name], unit, label)}")
    for load, summary in {result["load"]: result["summary"] for result in results if "load" in result}.items():
        lines += wrap(f"{load}: {summary}", 80)
    return "\n".join(lines)


def line(saved: dict[str, float | None], unit: float, label: str) -> str:
    """One figure of the table."""
    predicted, real, of = saved["predicted"], saved["real"], saved.get("of", 0.0)
    cells = ["-" if value is None else f"{value / unit:.3g}" for value in (predicted, real)]
    ratio = f"{real / predicted:.2f}" if predicted and abs(predicted) >= of / 20 else "-"
    return f"{label.format(of / unit):<22}{cells[0]:>10}{cells[1]:>10}{ratio:>7}"


FIGURES = [("cpu", 1e-3, "CPU, ms of {:.3g}"), ("faults", 1e-3, "faults, ms of {:.3g}"), ("again", 1e-3, "again, ms of {:.3g}"),
           ("warm_up", 1e-3, "warm-up, ms"), ("exit", 1e-3, "end of session, ms"),
           ("page_tables", KB, "page tables then, kB"), ("page_tables_freed", KB, "page tables freed, kB")]
"""By name in a result: the unit, and the label. `faults` is the CPU time of the first pass less that of the second, `again` that
of the second."""
