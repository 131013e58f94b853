"""A PostgreSQL whose programs and packages a test may replace: copies of the programs, and links to everything else."""

import os
import shutil
from pathlib import Path

from harness.cluster import Install


def own_programs(install: Install, root: Path) -> Install:
    """The installation again, below `root`; the server finds its files from where its programs are."""
    places = {what: Path(install.ask(what)) for what in ("bindir", "pkglibdir", "sharedir")}
    common = os.path.commonpath(list(places.values()))
    copies = {what: root / place.relative_to(common) for what, place in places.items()}
    shutil.copytree(places["bindir"], copies["bindir"])
    for what in ("pkglibdir", "sharedir"):
        copies[what].parent.mkdir(parents=True, exist_ok=True)
        copies[what].symlink_to(places[what])
    return Install(copies["bindir"] / "pg_config")


def own_packages(install: Install, root: Path) -> Install:
    """The same with directories of its own for libraries and extensions, in which each file is a link."""
    own = own_programs(install, root)
    share = Path(own.ask("sharedir"))
    for directory in (Path(own.ask("pkglibdir")), share, share / "extension"):
        files = list(directory.iterdir())
        target = directory.resolve()
        directory.unlink()
        directory.mkdir()
        for file in files:
            (directory / file.name).symlink_to(target / file.name)
    return own


def replace_server(install: Install, script: str) -> None:
    """Put a shell script in the place of the server's program, which `{real}` in it leads to."""
    program = install.bindir / "postgres"
    real = program.rename(program.with_name("postgres.real"))
    program.write_text("#!/bin/sh\n" + script.replace("{real}", str(real)) + "\n")
    program.chmod(0o755)
