"""What was measured where: the machine and the software in a few words, and nothing that names the machine."""

import os
import platform
import re
from functools import cache
from pathlib import Path

from harness.cluster import Install
from harness.kernel import meminfo
from harness.units import GB


def describe(install: Install) -> str:
    """One line."""
    model = re.search(r"(?m)^(?:model name|CPU part)\s*: (.*)", Path("/proc/cpuinfo").read_text())
    kernel = re.match(r"[\d.]+", os.uname().release)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return (f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, "
            f"{meminfo()['MemTotal'] / GB:.0f} GB of memory; Linux {kernel[0] if kernel else '?'}, {system}, "
            f"{install.ask('version').split(' (')[0]}")


@cache
def load() -> str:
    """How busy the machine was before the first measurement: the first call counts."""
    average, cpus = os.getloadavg()[0], os.cpu_count() or 1
    busy = " Other programs kept it busy, so times are above those of an idle machine." if average > cpus / 2 else ""
    return f"Its load average was {average:.1f} on {cpus} CPUs before the run.{busy}"
