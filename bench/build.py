"""Compiles what the bench runs inside the server."""

import os
import shutil
import subprocess
from pathlib import Path

from harness.cluster import Cluster, Install

HERE = Path(__file__).parent
FLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter")


def build(install: Install, directory: Path) -> None:
    """Make `in_server.so` in a directory, which the server's user may read from then on."""
    compile_c("-fPIC", "-shared", f"-I{install.ask('includedir-server')}",
              "-o", directory / "in_server.so", HERE / "in_server.c")
    directory.chmod(0o755)


def compile_c(*arguments: str | Path) -> None:
    """Run the C compiler, $CC or cc; its messages go to the terminal."""
    compiler = os.environ.get("CC", "cc")
    if not shutil.which(compiler):
        raise SystemExit(f"bench: no C compiler ({compiler}): ./dev setup installs one")
    subprocess.run([compiler, *FLAGS, *map(str, arguments)], check=True)


def prepare(cluster: Cluster, directory: Path) -> None:
    """Put the extension, the functions of in_server.c and the timers into a running server's database."""
    script = cluster.root / "in_server.sql"
    shutil.copyfile(HERE / "in_server.sql", script)    # without its permissions, which a checkout may have closed
    cluster.command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"module={directory / 'in_server'}",
                    "-h", cluster.root, "-U", "postgres", "-f", script, "postgres")
