"""What was measured where: the machine and the software in a few words, and nothing that names the machine."""

import os
import platform
import re
import time
from pathlib import Path

from harness.cluster import Install
from harness.kernel import meminfo
from harness.units import GB

SECONDS = 3


def describe(install: Install) -> str:
    """One line."""
    model = re.search(r"(?m)^(?:model name|CPU part)\s*: (.*)", Path("/proc/cpuinfo").read_text())
    kernel = re.match(r"[\d.]+", os.uname().release)
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return (f"{model[1] if model else platform.machine()}, {os.cpu_count()} CPUs, "
            f"{meminfo()['MemTotal'] / GB:.0f} GB of memory; Linux {kernel[0] if kernel else '?'}, {system}, "
            f"{install.ask('version').split(' (')[0]}")


def load() -> str:
    """How busy the CPUs are, for the seconds before the first measurement. The load average would still speak of whatever ended a
    minute ago."""
    before = _busy_and_all()
    time.sleep(SECONDS)
    busy, whole = (after - earlier for after, earlier in zip(_busy_and_all(), before))
    share = busy / max(whole, 1)
    warning = " Other programs kept it busy, so times are above those of an idle machine." if share > 0.1 else ""
    return f"Its CPUs were {share:.0%} busy in the {SECONDS} s before the run.{warning}"


def _busy_and_all() -> tuple[int, int]:
    """Ticks of all CPUs since the boot (proc_stat(5)); guests are counted in user and nice."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)
