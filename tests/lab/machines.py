"""The machines of ./dev lab: what QEMU and the kernel's command line make of a guest, and the scenarios that run there.

The scenarios of a machine are the tests of `test_MACHINE.py` in this directory, and those of tests/scenarios that are listed
here. Machines with the same boot share a guest.
"""

import ast
from dataclasses import dataclass, field
from pathlib import Path

from harness.guest import AMD64, CPU, Architecture

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Boot:
    """How a guest starts: MB of each NUMA node, the CPU, how the agent mounts cgroups, words of the kernel's command line."""

    name: str
    nodes: tuple[int, ...] = (1536,)
    cpu: str = CPU
    cgroups: str = "unified"
    words: str = ""
    own_default: bool = False
    """The kernel's own default size of huge pages. Else it is 2 MB on every architecture, as most scenarios take for granted."""

    def words_for(self, architecture: Architecture) -> str:
        """The words on that architecture, whose kernel may have another default with another base page."""
        plain = architecture == AMD64 or self.own_default or "default_hugepagesz" in self.words
        return self.words if plain else f"default_hugepagesz=2M {self.words}".strip()


ONE_NODE = Boot("one-node", cgroups="accounting")
TWO_NODES = Boot("two-nodes", nodes=(1024, 1024))
TWO_GB = Boot("two-gb", nodes=(2048,))
HYBRID = Boot("hybrid", cgroups="hybrid")
GIGANTIC = Boot("gigantic", nodes=(3072,), words="default_hugepagesz=1G hugepagesz=1G hugepages=1")
LARGE = Boot("large", nodes=(14336,))
NO_PSE = Boot("no-pse", cpu=f"{CPU},-pse")
OWN_SIZES = Boot("own-sizes", own_default=True)
COMMAND_LINES = Boot("command-lines", nodes=(3072, 3072))
"""Booted for each row of a table, with the row's words: see command_lines.py."""

DEBIAN_BOOT = Boot("debian-boot", nodes=(1024,))
"""A Debian with systemd on a disk of its own, booted again and again: see debian_boot.py."""


@dataclass(frozen=True)
class Machine:
    """A machine by the name of its file of tests, and what sets it apart."""

    name: str
    boot: Boot
    about: str
    shared: tuple[str, ...] = field(default=())
    impossible: dict[str, str] = field(default_factory=dict, hash=False)
    """Why there is no such machine, by architecture."""
    of_host: tuple[str, ...] = ()
    """Scenarios that run outside of a guest: functions in this directory."""

    def scenarios(self) -> dict[str, str]:
        """Pytest's node ids, below tests, by the scenarios' names."""
        own = HERE / f"test_{self.name.replace('-', '_')}.py"
        found = {}
        for node in ast.parse(own.read_text()).body if own.exists() else []:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[_words(node.name)] = f"lab/{own.name}::{node.name}"
        for own in self.of_host:
            found[_words(own.split("::")[1])] = f"lab/{own}"
        for shared in self.shared:
            found[_words(shared.split("::")[1])] = f"scenarios/{shared}"
        return found


def _words(function: str) -> str:
    return function.removeprefix("test_").replace("_", " ")


MACHINES = [
    Machine("two-nodes", TWO_NODES, "The pool is spread over two nodes", (
        "test_views.py::test_pools_of_the_nodes",
        "test_collapse.py::test_the_sidecar_is_killed_in_the_middle",
    )),
    Machine("two-nodes-uneven", TWO_NODES, "All pages are on one of two nodes"),
    Machine("cpuset", TWO_NODES, "A cpuset allows one of two nodes"),
    Machine("mempolicy", TWO_NODES, "The server has a memory policy, set with numactl"),
    Machine("unified", ONE_NODE, "Memory cgroups that count huge pages, or do not", (
        "test_cgroup.py::test_reservation_limit_falls_back",
        "test_cgroup.py::test_limit_below_the_segment_is_critical",
        "test_cgroup.py::test_limit_of_an_outer_group",
    )),
    Machine("one-node", ONE_NODE, "One node, pages of 2 MB, one hierarchy of cgroups v2", (
        "test_landing.py::test_pool_taken_by_another_cluster",
        "test_restart.py::test_pool_shrunk_while_running",
        "test_restart.py::test_crash_restart_keeps_its_pages",
        "test_restart.py::test_next_start_would_fail",
        "test_outlook.py::test_surplus_only",
        "test_outlook.py::test_overcommit_only",
    )),
    Machine("descriptors", ONE_NODE, "The kernel gives back its descriptors of the pages in a huge page"),
    Machine("page-sizes", OWN_SIZES, "Every size of huge page that the kernel has, beside its own default and base page"),
    Machine("docker-like", ONE_NODE, "Namespaces of cgroups, processes and mounts; /sys is read-only"),
    Machine("thp-shmem", ONE_NODE, "Transparent huge pages for shared memory", (
        "test_thp.py::test_whole",
        "test_thp.py::test_partial",
    )),
    Machine("memory-ends", TWO_GB, "One node of 2 GB, and a server that `collapse` gives huge pages", (
        "test_collapse.py::test_one_truth_afterwards",
        "test_collapse.py::test_under_load",
        "test_collapse.py::test_a_standby",
        "test_collapse.py::test_the_server_ends_in_the_middle",
    )),
    Machine("v1", HYBRID, "Controllers hugetlb and memory in hierarchies v1, beside an empty v2 (hybrid)"),
    Machine("hugepagesz-1g", GIGANTIC, "The kernel runs with default_hugepagesz=1G, and one page was reserved at boot"),
    Machine("fragmented", GIGANTIC, "Memory is in pieces smaller than a huge page, beside an unused page of 1 GB"),
    Machine("gigantic-pool", LARGE, "Memory for pages of 1 GB", (
        "test_landing.py::test_landed",
        "test_landing.py::test_pool_empty",
        "test_outlook.py::test_gigantic_pages_on_disk",
        "test_recommendations.py::test_enough_is_not_called_too_little",
        "test_robustness.py::test_without_procmap_query",
        "test_apply.py::test_other_sizes",
    ), impossible={"arm64": "an emulated arm64 takes an hour for 500 sessions"}),
    Machine("command-lines", COMMAND_LINES, "Each row of tests/lab/command-lines.tsv is a boot, whose pools are compared with the table",
            impossible={"arm64": "the table has the page sizes of amd64"}, of_host=("command_lines.py::pools_of_every_command_line",)),
    Machine("debian-boot", DEBIAN_BOOT, "A Debian with systemd and PostgreSQL, in which `hugepage-reserve.service` makes the pool, or nothing does",
            impossible={"arm64": "its Debian is of amd64"}, of_host=tuple(f"debian_boot.py::{name}" for name in (
                "the_unit_reserves_what_the_boot_starts",
                "a_pool_by_hand_is_lost",
                "lines_of_sysctl_d",
                "memory_too_small",
                "a_data_directory_on_a_late_mount",
                "sysctl_system_beside_the_unit",
                "a_tool_lowers_the_pool_later",
                "a_soft_reboot",
            ))),
    Machine("no-hugetlb", NO_PSE, "A CPU without huge pages, so a kernel without pools",
            impossible={"arm64": "there is no arm64 CPU without huge pages"}),
]

SHORT = ("two-nodes-uneven", "cpuset", "unified", "descriptors")
"""The machines of ./dev lab --short: nine scenarios in two guests of each kernel."""
