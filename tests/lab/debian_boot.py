"""The scenarios of the machine debian-boot: what a real boot makes of the pool, with systemd, PostgreSQL and hugepage-reserve.service.

Each has a Debian of its own, freshly installed, with one cluster that starts at a boot and has huge_pages = on. QEMU runs it without KVM:
a boot takes 20 s, and minutes beside other work. So a scenario makes as many statements as its boots allow.
"""

import re
from collections.abc import Callable
from pathlib import Path

from debian_host import MAIN, MAJOR, DebianHost

from harness.guest import Kernel
from harness.units import MB

SETTINGS = f"{MAIN}/conf.d/lab.conf"
DATA = f"/var/lib/postgresql/{MAJOR}"
SYSCTL = "/etc/sysctl.d/90-postgresql-hugepages.conf"
SMALL, LARGE = "64MB", "128MB"


def _configure(host: DebianHost, shared_buffers: str, huge_pages: str = "on", cluster: str = "main") -> None:
    host.write(SETTINGS.replace("/main/", f"/{cluster}/"), f"huge_pages = {huge_pages}\nshared_buffers = {shared_buffers}\n")


def _enable_unit(host: DebianHost) -> None:
    host.run("systemctl enable hugepage-reserve hugepage-sidecar")


def _findings(host: DebianHost) -> set[str]:
    """The findings of all instances, notices included."""
    found = re.findall(r'^hugepage_finding_severity{.*finding="(\w+)"} ([1-9])', host.run("hugepage-sidecar metrics"), re.MULTILINE)
    return {name for name, _severity in found}


def _assert_landed(host: DebianHost, cluster: str = "main") -> int:
    """The cluster's pages, all of its shared memory."""
    kb = host.landed(cluster)
    assert kb, f"{cluster} has no huge pages\n{host.journal()}"
    return host.pool()


def _assert_watched(host: DebianHost) -> None:
    """In the limits and the sandbox of its packaged unit, `watch` sees where the server landed."""
    host.run("until ls /var/lib/hugepage-sidecar/*main*; do sleep 1; done")
    log = host.run("journalctl -b -o cat -u hugepage-sidecar")
    assert re.search(r"landed in \d+ huge pages of 2 MB", log) and "could not" not in log, log
    assert host.run("systemctl is-active hugepage-sidecar").strip() == "active"
    assert int(host.run("systemctl show -P MemoryPeak hugepage-sidecar")) < 48 * MB


def the_unit_reserves_what_the_boot_starts(host: DebianHost) -> None:
    """Also for a larger shared_buffers, of which only the next start knows; nobody is asked twice."""
    _configure(host, SMALL)
    _enable_unit(host)
    assert host.pool() == 0
    host.reboot()
    small = _assert_landed(host)
    assert f"reserved {small} of {small} pages of 2 MB for 1 server" in host.journal(), host.journal()
    assert "ordering cycle" not in host.run("journalctl -b")
    # A start of any unit pulls in what sysinit.target wants.
    host.run("systemctl start systemd-ask-password-wall.service || :")
    assert host.journal().count("reserved") == 1, host.journal()
    _configure(host, LARGE)
    host.reboot()
    large = _assert_landed(host)
    assert large > small + 25, host.journal()
    assert f"reserved {large} of {large} pages" in host.journal(), host.journal()
    assert not _findings(host) & {"boot_loses", "boot_unknown"}, _findings(host)
    _assert_watched(host)


def a_pool_by_hand_is_lost(host: DebianHost) -> None:
    """The finding stands before the boot, and the boot does lose."""
    _configure(host, SMALL)
    host.run(f"sysctl -w vm.nr_hugepages=60 && systemctl restart postgresql@{MAJOR}-main")
    _assert_landed(host)
    assert _findings(host) & {"boot_loses", "boot_unknown"}, _findings(host)
    host.reboot()
    assert (host.pool(), host.landed()) == (0, None)


def lines_of_sysctl_d(host: DebianHost) -> None:
    """A plain line is kept; a later one that takes it back loses the pool, as was said before."""
    _configure(host, SMALL)
    host.write(SYSCTL, "vm.nr_hugepages = 60\n")
    host.reboot()
    assert _assert_landed(host) == 60
    assert not _findings(host) & {"boot_loses", "boot_unknown"}, _findings(host)
    host.write("/etc/sysctl.d/95-later.conf", "-vm.nr_hugepages\n")
    assert _findings(host) & {"boot_loses", "boot_unknown"}, _findings(host)
    host.reboot()
    assert (host.pool(), host.landed()) == (0, None)


def memory_too_small(host: DebianHost) -> None:
    """The boot goes on, base pages keep their share, and the journal says what is lacking."""
    _configure(host, "2GB", "try")
    _enable_unit(host)
    host.reboot()
    total = int(host.run("awk '/^MemTotal/ {print $2}' /proc/meminfo"))
    assert host.pool() * 2048 <= total * 80 / 100, host.journal()
    assert "does not fit" in host.journal(), host.journal()
    assert host.run("systemctl is-active sysinit.target multi-user.target").split() == ["active", "active"]


def a_data_directory_on_a_late_mount(host: DebianHost) -> None:
    """Its files are not there yet when the unit runs: what it needed when it last ran counts."""
    late, store = f"{DATA}/late", "/srv/late"
    host.run(f"mkdir -p {late} {store} && chown postgres: {store} && echo '{store} {late} none bind,_netdev,nofail,x-systemd.after=sysinit.target' >>/etc/fstab"
             f" && systemctl daemon-reload && mount {late}")
    host.run(f"pg_createcluster {MAJOR} late --start-conf auto")
    _configure(host, SMALL, "off")
    _configure(host, LARGE, "on", "late")
    host.run(f"sysctl -w vm.nr_hugepages=120 && systemctl daemon-reload && systemctl start postgresql@{MAJOR}-late")
    _enable_unit(host)
    host.run("systemctl start hugepage-sidecar && until ls /var/lib/hugepage-sidecar/*late*; do sleep 1; done")
    host.reboot()
    _assert_landed(host, "late")
    unit, mount = ("systemctl show -P ActiveEnterTimestampMonotonic " + name for name in ("hugepage-reserve", "var-lib-postgresql-17-late.mount"))
    assert int(host.run(unit)) < int(host.run(mount)), "the mount is not late"
    assert f"counted: {late}" in host.journal(), host.journal()


def sysctl_system_beside_the_unit(host: DebianHost) -> None:
    """A smaller line of sysctl.d is a finding, because scripts of packages run `sysctl --system`."""
    _configure(host, LARGE)
    _enable_unit(host)
    host.write(SYSCTL, "vm.nr_hugepages = 20\n")
    host.reboot()
    before = _assert_landed(host)
    assert "boot_loses" in _findings(host), _findings(host)
    assert "sysctl --system" in host.try_run("hugepage-sidecar check")[1]
    host.run("sysctl --system")
    assert host.pool() < before or host.run("grep -E '^HugePages_Surp' /proc/meminfo").split()[1] != "0"


def a_tool_lowers_the_pool_later(host: DebianHost) -> None:
    """What the unit left was taken away again: nothing says that the next boot makes it."""
    _configure(host, SMALL)
    _enable_unit(host)
    host.write("/etc/systemd/system/tool.service",
               "[Unit]\nAfter=sysinit.target\nBefore=postgresql.service\n"
               "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo 30 >/proc/sys/vm/nr_hugepages'\n[Install]\nWantedBy=multi-user.target\n")
    host.run("systemctl enable tool")
    _configure(host, SMALL, "try")
    host.reboot()
    assert (host.pool(), host.landed()) == (30, 0)
    host.run(f"sysctl -w vm.nr_hugepages=60 && systemctl restart postgresql@{MAJOR}-main")
    _assert_landed(host)
    assert _findings(host) & {"boot_loses", "boot_unknown"}, _findings(host)


def a_soft_reboot(host: DebianHost) -> None:
    """It keeps the kernel, its boot id and the pool, and the unit runs again."""
    _configure(host, SMALL)
    _enable_unit(host)
    host.reboot()
    small = _assert_landed(host)
    boot_id = host.run("cat /proc/sys/kernel/random/boot_id")
    _configure(host, LARGE)
    host.soft_reboot()
    assert host.run("cat /proc/sys/kernel/random/boot_id") == boot_id
    assert _assert_landed(host) > small + 25, host.journal()


def run_scenario(name: str, kernel: Kernel, lab: Path, console: Path) -> None:
    """Run one of these functions on a host of its own."""
    scenario: Callable[[DebianHost], None] = globals()[name]
    with DebianHost(kernel, lab, console) as host:
        scenario(host)
