"""hugepage-sidecar metrics: all instances of a host, as each would say of itself."""

import re
import subprocess

import pytest

from harness import next_boot, sidecar
from harness.poll import until
from harness.preloaded import PRELOADED
from harness.processes import run
from harness.prometheus import MONITORING, Samples, Textfile, get, node_exporter, queried, samples
from harness.status import create_extension
from harness.units import MB

pytestmark = pytest.mark.any_major

ITS_OWN = {"hugepage_allocations_total", "hugepage_page_tables_at_max_connections_bytes", "hugepage_build_info"}
"""What only the server itself says, or says otherwise."""

MOVES = {"hugepage_host_page_tables_bytes", "hugepage_page_tables_processes",
         "hugepage_page_tables_bytes", "hugepage_page_tables_max_bytes", "hugepage_page_tables_saving_bytes"}


def of_instance(found: Samples, name: str) -> Samples:
    """The samples of one instance, without those that move by themselves."""
    return {key: value for key, value in found.items()
            if ("name", name) in key[1] and key[0] not in MOVES | ITS_OWN}


def test_says_of_each_what_it_says_itself(new_cluster, pool):
    """Two servers, one in huge pages; seen from outside and from inside."""
    huge, base = new_cluster(**PRELOADED), new_cluster(shared_buffers="16MB", huge_pages=False)
    pool(2 * MB, huge.pages_needed(2 * MB))
    for server in (huge, base):
        create_extension(server.start())
    seen = sidecar.run("metrics")
    assert seen.status == 0
    for server, landed_in in ((huge, "hugetlb"), (base, "base")):
        own = of_instance(queried(server.connect()), str(server.data))
        assert own[("hugepage_landed_in", frozenset({("kind", "postgresql"), ("name", str(server.data)),
                                                     ("hugepage_landed_in", landed_in)}))] == 1
        assert of_instance(samples(seen.stdout), str(server.data)) == own
    # Here, because the module is also read where no such test runs.
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    families = {family.name for family in text_string_to_metric_families(seen.stdout)}
    assert {"hugepage_survey_duration_seconds", "hugepage_build_info", "hugepage_uninspected_instances"} <= families
    checked = subprocess.run(["promtool", "check", "metrics"], input=seen.stdout, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_textfile(new_cluster, tmp_path):
    """Written in one step, read by node_exporter, and left alone if it can't be written."""
    server = create_extension(new_cluster().start())
    textfile = Textfile(server, tmp_path)
    file = textfile.directory / "hugepages.prom"
    assert sidecar.run("metrics", "--textfile", file).status == 0
    assert file.stat().st_mode & 0o777 == 0o644
    written = of_instance(samples(file.read_text()), str(server.data))
    with node_exporter(textfile) as address:
        served = until("the samples", lambda: of_instance(samples(get(f"http://{address}/metrics")), str(server.data)))
        assert served == written
        assert "node_textfile_scrape_error 0" in get(f"http://{address}/metrics")
    before = file.read_bytes()
    run("mount", "--bind", "-o", "ro", str(textfile.directory), str(textfile.directory))
    try:
        run("mount", "-o", "remount,ro,bind", str(textfile.directory))
        failed = sidecar.run("metrics", "--textfile", file)
    finally:
        run("umount", str(textfile.directory))
    assert failed.status == 3 and str(file) in failed.stderr
    assert file.read_bytes() == before and list(textfile.directory.iterdir()) == [file]


def test_as_a_plugin(new_cluster, pool):
    """What monitoring/nagios/hugepages.cfg runs: one line, and the status of a plugin."""
    config = (MONITORING / "nagios/hugepages.cfg").read_text()
    [arguments] = re.findall(r"^# command\[check_hugepages\]=.*/hugepage-sidecar (.*)$", config, re.M)
    server = new_cluster(huge_pages=True)
    borrowed = pool(2 * MB, server.pages_needed(2 * MB))
    server.start()

    def plugin() -> tuple[int, str]:
        result = sidecar.run(*arguments.split(), "--instance", str(server.data))
        assert re.fullmatch(r"HUGEPAGES (OK|OK \(notice\)|WARNING|CRITICAL|UNKNOWN) - [^|\n]+\|( \w+=\d+B?)+\n", result.stdout), result
        return result.status, result.stdout.split()[1]

    assert plugin() == ((sidecar.WARNING, "WARNING") if next_boot.well("on") == "warning" else (sidecar.OK, "OK"))
    borrowed.resize(0)
    assert plugin() == (sidecar.CRITICAL, "CRITICAL")
