"""A virtual machine with a kernel of its own: QEMU without KVM, two disks, and an agent that runs commands (tests/lab/guest).

    with Guest(kernel, disks, console=Path("console.log"), words="hugepages=100") as guest:
        answer = guest.run("uname -r", seconds=60)

The disks stay unchanged: what the guest writes is forgotten when it ends.
"""

import base64
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CPU = "qemu64,-cx16,+pdpe1gb,+rdrand"
"""Of amd64. Plain: with `max` of QEMU 7.2, kernels crashed with false flags, in cmpxchg16b among others. With pages of 1 GB."""
_ANSWER = b"\x1e"


class GuestFailed(Exception):
    """The guest did not boot, did not answer in time, or ended; the message has its console's last lines."""


@dataclass(frozen=True)
class Architecture:
    """What boots an architecture, by Debian's name of it.

    `qemu`: the program and its options. `console` and `agent`: what the kernel calls its two serial ports, the second of which
    `agent_port` makes. `patience`: how many times the time limits of amd64 it is given, of the guest and in the guest.
    """

    name: str
    qemu: tuple[str, ...]
    console: str
    agent: str
    agent_port: tuple[str, ...]
    patience: int = 1


AMD64 = Architecture("amd64", ("qemu-system-x86_64",), "ttyS0", "ttyS1", ("-serial", "stdio"))
ARM64 = Architecture("arm64", ("qemu-system-aarch64", "-machine", "virt"), "ttyAMA0", "ttyS0",
                     ("-chardev", "stdio,id=agent,signal=off", "-device", "pci-serial,chardev=agent"), patience=4)
ARCHITECTURES = {one.name: one for one in (AMD64, ARM64)}


@dataclass(frozen=True)
class Kernel:
    """A kernel to boot: the name that ./dev lab knows it by, its release, its architecture, and the files that boot it."""

    name: str
    release: str
    image: Path
    initramfs: Path | None
    architecture: Architecture = AMD64


@dataclass(frozen=True)
class Answer:
    """What a command in the guest printed (stdout and stderr), and its exit status."""

    status: int
    output: str


class Guest:
    """A booted guest. A context manager: powered off at the end of the block.

    `nodes`: the memory of each NUMA node in MB, each with one CPU. `cpu`: the model on amd64; elsewhere it is QEMU's `max`. `words`
    are added to the kernel's command line, `devices` to QEMU's: without an initramfs, the root's disk is among them.
    """

    def __init__(self, kernel: Kernel, disks: list[Path], *, console: Path, nodes: tuple[int, ...] = (1536,),
                 cpu: str = CPU, words: str = "", devices: tuple[str, ...] = (), seconds: float = 120) -> None:
        self.console = console
        console.unlink(missing_ok=True)
        architecture = kernel.architecture
        self._timeout = architecture.patience
        command = [*architecture.qemu, "-accel", "tcg,thread=multi", "-cpu", cpu if architecture == AMD64 else "max",
                   "-m", str(sum(nodes)), "-smp", f"{len(nodes)},sockets={len(nodes)}",
                   "-display", "none", "-nodefaults", "-no-reboot", "-serial", f"file:{console}", *architecture.agent_port,
                   "-kernel", str(kernel.image), *(["-initrd", str(kernel.initramfs)] if kernel.initramfs else []), *devices,
                   "-append", f"console={architecture.console} lab.agent={architecture.agent} lab.slower={architecture.patience} panic=-1 oops=panic loglevel=5 {words}"]
        if len(nodes) > 1:
            for number, size in enumerate(nodes):
                command += ["-object", f"memory-backend-ram,id=node{number},size={size}M",
                            "-numa", f"node,memdev=node{number},cpus={number}"]
        for disk in disks:
            command += ["-drive", f"file={disk},format=raw,if=virtio,snapshot=on"]
        self._buffer = b""
        # A test of strict overcommit may be running on the host.
        for _ in range(30):
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                self._read_answer(seconds, None)
                return
            except GuestFailed as error:
                self.power_off()
                if "cannot set up guest memory" not in str(error):
                    raise
                lacks_memory = error
                time.sleep(2)
            except BaseException:
                self.power_off()
                raise
        raise lacks_memory

    def __enter__(self) -> "Guest":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.power_off()

    def power_off(self) -> None:
        """End the guest at once; nothing of it is kept."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def run(self, command: str, seconds: float, each_line: Callable[[str], None] | None = None) -> Answer:
        """Run a shell command as root and wait for its end; GuestFailed after `seconds` without another line of output.

        An architecture that is slower has so many times the seconds. `each_line` gets the lines as they come.
        """
        self._process.stdin.write(base64.b64encode(command.encode()) + b"\n")
        self._process.stdin.flush()
        output, status = self._read_answer(seconds, each_line)
        return Answer(int(status), output)

    def wait_until_ready(self, seconds: float) -> None:
        """Wait for the agent of the next system on the same kernel, as after a soft-reboot."""
        self._read_answer(seconds, None)

    def wait_for_end(self, seconds: float) -> None:
        """Wait until the guest ends by itself, as for a reboot; GuestFailed if it does not."""
        try:
            self._process.communicate(timeout=seconds * self._timeout)
        except subprocess.TimeoutExpired as error:
            raise GuestFailed("the guest does not end") from error

    def _read_answer(self, seconds: float, each_line: Callable[[str], None] | None) -> tuple[str, str]:
        """The lines until the one that begins with RS, and the rest of that one."""
        lines: list[str] = []
        while True:
            line = self._read_line(time.monotonic() + seconds * self._timeout, lines)
            if _ANSWER in line:
                return "\n".join(lines).rstrip("\n"), line.split(_ANSWER, 1)[1].decode().strip()
            lines.append(line.decode(errors="replace").rstrip("\r"))
            if each_line:
                each_line(lines[-1])

    def _read_line(self, deadline: float, lines: list[str]) -> bytes:
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, deadline - time.monotonic()))
            read = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not read:
                console_lines = self.console.read_text(errors="replace").splitlines()[-15:] if self.console.exists() else []
                why = "has ended" if ready else "does not answer"
                raise GuestFailed("\n".join([f"the guest {why}; the end of its output and of its console:",
                                             *lines[-15:], self._buffer.decode(errors="replace"), *console_lines]))
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
