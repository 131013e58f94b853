"""Captures of guests with what their scenarios expect of them, for tests/captures to be tried without a guest."""

import json
import tarfile
from pathlib import Path
from typing import Any

DIRECTORY = Path("/tmp/captures")
"""Where a guest keeps them; ./dev lab --captures takes them from there."""
EXPECTED = "expected.json"
OF_THE_DISTRIBUTION = {"./usr", "./lib", "./etc/login.defs", "./etc/sysctl.d/README.sysctl"}
"""What is in every capture of Debian and says nothing of the machine."""


def keep_capture(machine: str, tree: Path, expected: dict[str, Any]) -> None:
    """Keep the tree as an archive with columns of its one server, unless the guest has one of this machine."""
    archive = DIRECTORY / f"{machine.replace('_', '-')}.tar.xz"
    if archive.exists():
        return
    DIRECTORY.mkdir(exist_ok=True)
    (tree / EXPECTED).write_text(json.dumps(expected, indent=1) + "\n")
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(tree, arcname=".", filter=lambda file: None if file.name in OF_THE_DISTRIBUTION else file)
