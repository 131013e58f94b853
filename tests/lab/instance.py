"""What the sidecar says of the one server in a guest."""

from pathlib import Path
from typing import Any

from harness import sidecar


def sidecar_row(tree: Path | None = None, **options: Any) -> dict[str, Any]:
    """The one instance of `hugepage-sidecar status`, of a capture if `tree` is given; the options are those of sidecar.run."""
    answer = sidecar.run(*(["--root", tree] if tree else []), "status", "--format", "json", **options)
    assert answer.stdout, answer.stderr
    [instance] = answer.json()["instances"]
    return instance
