"""A server that sees an /etc of its own: the host's, with files of a test above it, in a mount namespace."""

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
# What a host has that runs systemd, and in which no pool was changed by hand.
[ -d /run/systemd/system ] && [ -z "$2" ] || { mount -t tmpfs -o mode=755 none /run && mkdir -p /run/systemd/system; }
[ -z "$2" ] || { echo "$2.00 1.00" >"$1/layers/uptime" && mount --bind "$1/layers/uptime" /proc/uptime; }
shift 2
exec "$@"
"""


def through_etc(place: Path, files: Mapping[str, str | Path], uptime: int | None = None) -> list[str]:
    """The beginning of a command line that runs the rest with these files by their names below /etc: a text is the content, a path what
    the file is a link to. They are kept in `place`. `uptime`: seconds since the boot, for programs that ask."""
    (place / "layers").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = place / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        if isinstance(content, Path):
            file.symlink_to(content)
        else:
            file.write_text(content)
    (place / "files").mkdir(exist_ok=True)
    return ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(place), str(uptime or "")]


def start_with_etc(server: Cluster, files: Mapping[str, str | Path], uptime: int | None = None) -> Cluster:
    """Start the server with these files, as of `through_etc`."""
    return server.start(through=through_etc(server.root / "etc", files, uptime))


def etc_of(server: Cluster) -> Path:
    """The /etc that the running server sees, for root to change."""
    return Path(f"/proc/{server.postmaster}/root/etc")
