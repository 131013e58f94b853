"""The guests of ./dev lab: what is booted, from the files that scripts/lab.sh has prepared."""

import time
from pathlib import Path

from harness.guest import AMD64, ARM64, Guest, Kernel
from machines import Boot

ENVIRONMENT = ("cd /tmp && export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/mnt/tests/lab HUGEPAGE_SIDECAR=/mnt/installed/hugepage-sidecar "
               "PG_CONFIG=$(echo /usr/lib/postgresql/*/bin/pg_config) && "
               "if [ -d /var/lib/postgresql/template ]; then export PG_HUGEPAGES_TEMPLATE=/var/lib/postgresql/template; fi && ")
"""What a command of the project needs in a guest. None of arm64 brings a template along: initdb runs there alone."""

SECONDS_TO_BOOT = 180

GUESTS = 3
"""Guests that are tried for the same work. QEMU with several threads now and then runs an instruction that another CPU of the
guest is just changing, as the kernel does when the first cpuset is made, and the guest's kernel panics."""


def kernel_of(lab: Path, name: str) -> Kernel | str:
    """The kernel that ./dev lab knows by that name, or why it could not be had."""
    directory = lab / "kernels" / name
    missing = directory / "missing"
    if missing.exists():
        return missing.read_text().strip()
    return Kernel(name, (directory / "release").read_text().strip(), directory / "vmlinuz", directory / "initramfs",
                  ARM64 if "-arm64" in name else AMD64)


def log_of(lab: Path, kernel: Kernel, boot: Boot, kind: str = "log") -> Path:
    """The file in lab/logs for the output of a guest, or for its console."""
    (lab / "logs").mkdir(exist_ok=True)
    return lab / "logs" / f"{kernel.name}-{boot.name}.{kind}"


def booted(lab: Path, kernel: Kernel, boot: Boot) -> Guest:
    """A guest, booted; GuestFailed if it does not come up."""
    began = time.monotonic()
    guest = Guest(kernel, _disks(lab / kernel.architecture.name), console=log_of(lab, kernel, boot, "console"), nodes=boot.nodes, cpu=boot.cpu,
                  words=f"lab.cgroups={boot.cgroups} {boot.words_for(kernel.architecture)}", seconds=SECONDS_TO_BOOT)
    print(f"   {boot.name}: booted in {time.monotonic() - began:.0f} s", flush=True)
    return guest


def _disks(directory: Path) -> list[Path]:
    """The root's, of the PostgreSQL that was made last, and the project's."""
    return [max(directory.glob("root*.img"), key=lambda image: image.stat().st_mtime), directory / "project.img"]
