"""A Debian with systemd in a guest, whose disk keeps what is written: a boot is a boot.

    with DebianHost(kernel, lab, console) as host:
        host.run("systemctl enable hugepage-reserve")
        host.reboot()
"""

import shlex
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.guest import Guest, GuestFailed, Kernel

MAJOR = 17
MEMORY_MB = 1024
SECONDS_TO_BOOT = 600
"""Half a minute, but for the neighbours of the guest."""
SECONDS = 240
MAIN = f"/etc/postgresql/{MAJOR}/main"


class DebianHost:
    """The guest. A context manager: powered off at the end of the block, and its disk is removed."""

    def __init__(self, kernel: Kernel, lab: Path, console: Path) -> None:
        self._kernel = replace(kernel, initramfs=None)
        self._console = console
        self._directory = TemporaryDirectory(dir=lab / "boot")
        root = Path(self._directory.name) / "root.img"
        subprocess.run(["cp", "--sparse=always", "--reflink=auto", lab / "boot" / "root.img", root], check=True)
        self._devices = ("-drive", f"file={root},format=raw,if=none,id=root", "-device", "nvme,drive=root,serial=root")
        self._guest: Guest | None = None
        self.boot()

    def __enter__(self) -> "DebianHost":
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._guest:
            self._guest.power_off()
        self._directory.cleanup()

    def boot(self, words: str = "") -> None:
        """Boot, and wait until systemd has nothing left to start."""
        # Power management is what ends the guest.
        words = f"root=/dev/nvme0n1 rw systemd.journald.forward_to_console=no {words}"
        for last in (False, True):
            try:
                self._guest = Guest(self._kernel, [], console=self._console, nodes=(MEMORY_MB,), words=words,
                                    devices=self._devices, seconds=SECONDS_TO_BOOT)
                break
            except GuestFailed:
                if last:
                    raise
        self._settle()

    def reboot(self, words: str = "") -> None:
        """Reboot as an administrator does."""
        # The answer may come before the end, or not.
        with suppress(GuestFailed):
            self.guest.run("systemctl reboot --no-block", seconds=SECONDS)
        self.guest.wait_for_end(SECONDS)
        self.boot(words)

    def soft_reboot(self) -> None:
        """A new system on the same kernel."""
        # Later, or the next agent might be ready before this one has answered.
        self.run("systemd-run --quiet --on-active=3 systemctl soft-reboot --no-block")
        self.guest.wait_until_ready(SECONDS_TO_BOOT)
        self._settle()

    @property
    def guest(self) -> Guest:
        """The guest that runs."""
        assert self._guest
        return self._guest

    def _settle(self) -> None:
        self.guest.run("systemctl is-system-running --wait", seconds=SECONDS_TO_BOOT)

    def run(self, command: str) -> str:
        """What a command prints; it must succeed."""
        answer = self.guest.run(command, seconds=SECONDS)
        assert answer.status == 0, f"{command}: {answer.status}\n{answer.output}"
        return answer.output

    def try_run(self, command: str) -> tuple[int, str]:
        """The exit status and the output of a command."""
        answer = self.guest.run(command, seconds=SECONDS)
        return answer.status, answer.output

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        self.run(f"mkdir -p $(dirname {path}) && printf %s {shlex.quote(text)} >{path}")

    def pool(self) -> int:
        """`vm.nr_hugepages` as the kernel has it."""
        return int(self.run("cat /proc/sys/vm/nr_hugepages"))

    def journal(self) -> str:
        """What hugepage-reserve.service wrote at this boot."""
        return self.run("journalctl -b -o cat -u hugepage-reserve")

    def landed(self, cluster: str = "main") -> int | None:
        """The kB of huge pages that the cluster's server has mapped; None if it does not run."""
        data = f"/var/lib/postgresql/{MAJOR}/{cluster}"
        status, output = self.try_run(f"grep _Hugetlb /proc/$(head -1 {data}/postmaster.pid)/smaps")
        return None if status else sum(int(line.split()[1]) for line in output.splitlines())
