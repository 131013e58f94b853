"""What the next boot of this host does to a pool, read without the product: as a rule nothing sets one."""

import os
import re
import time
from functools import cache
from pathlib import Path

SYSCTL = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/etc/tmpfiles.d", "/etc/tuned")

LOADERS = ("/boot/grub", "/boot/grub2", "/boot/loader", "/boot/efi/EFI", "/boot/efi/loader", "/efi/EFI", "/efi/loader", "/boot/EFI",
           "/etc/default/grub", "/etc/default/grub.d", "/etc/grub.d", "/etc/kernel", "/boot/extlinux", "/boot/syslinux",
           "/boot/cmdline.txt", "/boot/firmware/cmdline.txt")


@cache
def is_container() -> bool:
    """Whether the files here are those of a container, and not of the host that boots."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    of_root = [mount[mount.index("-") + 1] for mount in mounts if mount[4] == "/"]
    return os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" or of_root[-1:] == ["overlay"]


def has_systemd() -> bool:
    """Whether systemd runs, whose files set the pool at the next boot."""
    return Path("/run/systemd/system").is_dir()


@cache
def is_unset() -> bool:
    """Whether nothing sets a pool at boot. In a container that is unknown, and without systemd, and if a boot loader was changed."""
    if is_container() or not has_systemd():
        return False
    booted = time.time() - float(Path("/proc/uptime").read_text().split()[0])
    loaders = [file for place in LOADERS for file in [Path(place), *Path(place).rglob("*")] if file.exists()]
    if any(max(file.stat().st_mtime, file.stat().st_ctime) > booted for file in loaders):
        return False
    files = [Path("/etc/sysctl.conf"), *(path for directory in SYSCTL for path in Path(directory).rglob("*") if path.is_file())]
    texts = [path.read_text(errors="replace") for path in files if path.exists()]
    lines = [line for text in texts for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
    return not re.search(r"\bhugepages=", Path("/proc/cmdline").read_text()) and not any("nr_hugepages" in line for line in lines)


def well(huge_pages: str = "try") -> str:
    """The verdict of a server in huge pages that lacks nothing: where nothing sets its pool at boot, that is told."""
    if not is_unset():
        return "ok"
    return "warning" if huge_pages == "on" else "notice"
