"""Do what a hint says."""

import re
from pathlib import Path


def follow(hint: str) -> dict[Path, int]:
    """Run the hint's commands `echo N > FILE` and `sysctl -w vm.nr_hugepages=N`; what they wrote."""
    written = {Path(path): int(number) for number, path in re.findall(r'echo (\d+) > (/sys/[^ "]+)', hint)}
    written |= {Path("/proc/sys/vm/nr_hugepages"): int(number) for number in re.findall(r"vm\.nr_hugepages=(\d+)", hint)}
    assert written, f"no command in the hint: {hint}"
    for path, number in written.items():
        path.write_text(str(number))
    return written
