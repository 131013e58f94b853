"""The sets of the sidecar's systemd unit, where no systemd runs: its capabilities by setpriv(1), its system calls by libseccomp.

Run as a program, it keeps of the system calls those of the unit, and becomes the command that follows.
"""

import ctypes
import errno
import os
import shlex
import sys
from functools import cache
from pathlib import Path

UNIT = Path(__file__).parents[2] / "packaging/systemd/hugepage-sidecar.service"
SCMP_ACT_ALLOW = 0x7FFF0000
SCMP_ACT_ERRNO = 0x00050000


def values(name: str) -> list[str]:
    """Of each line that sets `name`."""
    lines = UNIT.read_text().splitlines()
    return [line.removeprefix(f"{name}=") for line in lines if line.startswith(f"{name}=")]


def command(*drop_ins: str) -> list[str]:
    """The program with its arguments, with these drop-ins beside the unit."""
    lines = [line for name in (UNIT.name, *drop_ins) for line in (UNIT.parent / name).read_text().splitlines()]
    assigned = [word.split("=", 1) for line in lines if line.startswith("Environment=")
                for word in shlex.split(line.removeprefix("Environment="))]
    variables = {f"${name}": value for name, value in assigned}
    [words] = values("ExecStart")
    return " ".join(variables.get(word, word) for word in words.split()).split()


def capabilities() -> list[str]:
    """The bounding set, as CAP_NAME."""
    [names] = values("CapabilityBoundingSet")
    assert values("AmbientCapabilities") == [""] and values("NoNewPrivileges") == ["yes"]
    return names.split()


@cache
def group(name: str) -> frozenset[str]:
    """The system calls of a group such as @system-service, those of its groups included."""
    from harness.processes import run

    words = [line.split("#")[0].strip() for line in run("systemd-analyze", "--no-pager", "syscall-filter", name).splitlines()[1:]]
    return frozenset().union(*(group(word) if word.startswith("@") else {word} for word in words if word))


def system_calls() -> set[str]:
    """What SystemCallFilter= leaves (systemd.exec(5)): the first line begins a list, later ones add to it or take from it."""
    left: set[str] = set()
    for value in values("SystemCallFilter"):
        named = set().union(*(group(word) if word.startswith("@") else {word} for word in value.removeprefix("~").split()))
        left = left - named if value.startswith("~") else left | named
    assert values("SystemCallErrorNumber") == ["EPERM"]
    return left


def through(without: str | None = None) -> list[str]:
    """The beginning of a command line that runs the rest as the unit would, `without` one of its capabilities."""
    kept = "".join(f",+{name.removeprefix('CAP_').lower()}" for name in capabilities() if name != without)
    [mask] = values("UMask")
    return ["setpriv", f"--bounding-set=-all{kept}", "--inh-caps=-all", "--no-new-privs",
            sys.executable, __file__, mask, ",".join(sorted(system_calls()))]


def _become(mask: str, calls: str, *command: str) -> None:
    os.umask(int(mask, 8))
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(SCMP_ACT_ERRNO | errno.EPERM))
    for call in calls.split(","):
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        # Of other architectures, or newer than this library.
        if number >= 0 and seccomp.seccomp_rule_add(context, SCMP_ACT_ALLOW, number, 0):
            raise OSError(f"no rule for {call}")
    if seccomp.seccomp_load(context):
        raise OSError("the filter was not loaded")
    os.execv(command[0], command)


if __name__ == "__main__":
    _become(*sys.argv[1:])
