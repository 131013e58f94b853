"""A server that sees an /etc of its own: the host's, with files of a test above it, in a mount namespace. The boot loader's files are hidden."""

from collections.abc import Mapping
from pathlib import Path

from harness.cluster import Cluster

SYSCTL = "sysctl.d/zz-pg_hugepages.conf"
"""Sorts behind those of distributions."""

_MOUNT = """set -e
mount -t tmpfs -o mode=755 none "$1/layers"
mkdir "$1/layers/upper" "$1/layers/work"
cp -a "$1/files/." "$1/layers/upper/"
mount -t overlay -o "lowerdir=/etc,upperdir=$1/layers/upper,workdir=$1/layers/work" none /etc
rm -rf /etc/kernel /etc/default/grub /etc/default/grub.d
[ ! -d /boot ] || mount -t tmpfs none /boot
# What a host has that runs systemd.
[ -d /run/systemd/system ] || { mount -t tmpfs -o mode=755 none /run && mkdir -p /run/systemd/system; }
shift
exec "$@"
"""


def through_etc(place: Path, files: Mapping[str, str | Path]) -> list[str]:
    """The beginning of a command line that runs the rest with these files by their names below /etc: a text is the content, a path what
    the file is a link to. They are kept in `place`."""
    (place / "layers").mkdir(parents=True)
    for name, content in files.items():
        file = place / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            file.symlink_to(content)
        else:
            file.write_text(content)
    (place / "files").mkdir(exist_ok=True)
    return ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(place)]


def start_with_etc(server: Cluster, files: Mapping[str, str | Path]) -> Cluster:
    """Start the server with these files, as of `through_etc`."""
    return server.start(through=through_etc(server.root / "etc", files))


def etc_of(server: Cluster) -> Path:
    """The /etc that the running server sees, for root to change."""
    return Path(f"/proc/{server.postmaster}/root/etc")


def unit(program: str | Path) -> dict[str, str | Path]:
    """An enabled unit that runs a program at boot."""
    return units([program])


def units(programs: list[str | Path], enabled: int | None = None) -> dict[str, str | Path]:
    """A unit for each program, of which the first `enabled` run at boot; without that number all."""
    found: dict[str, str | Path] = {}
    for number, program in enumerate(programs):
        name = f"of-a-test-{number}.service"
        found[f"systemd/system/{name}"] = (
            f"[Unit]\nDescription=Unit {number} of a test\n[Service]\nType=oneshot\nExecStart={program}\n"
            "[Install]\nWantedBy=multi-user.target\n")
        if enabled is None or number < enabled:
            found[f"systemd/system/multi-user.target.wants/{name}"] = Path(f"/etc/systemd/system/{name}")
    return found
