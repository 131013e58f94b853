"""What was measured where: the machine and the software in a few words, and nothing that names the machine."""

import os
import platform
import re
from collections.abc import Collection
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


class Usage:
    """How busy CPUs are from now on, all but some. The load average would still speak of whatever ended a minute ago."""

    def __init__(self, without: Collection[int] = ()) -> None:
        self._without = without
        self._begun = self._busy_and_all()

    def share(self) -> float:
        """Of their time since then, from 0 to 1; 0 if there are no others."""
        busy, whole = (now - begun for now, begun in zip(self._busy_and_all(), self._begun))
        return busy / max(whole, 1)

    def _busy_and_all(self) -> tuple[int, int]:
        """Ticks since the boot (proc_stat(5)); guests are counted in user and nice."""
        busy = whole = 0
        for cpu, text in re.findall(r"(?m)^cpu(\d+) (.*)", Path("/proc/stat").read_text()):
            if int(cpu) not in self._without:
                ticks = [int(word) for word in text.split()[:8]]
                whole += sum(ticks)
                busy += sum(ticks) - ticks[3] - ticks[4]
        return busy, whole
