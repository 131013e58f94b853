"""What the sidecar says of the one server in a guest."""

from typing import Any

from harness import sidecar


def sidecar_row(**options: Any) -> dict[str, Any]:
    """The one instance of `hugepage-sidecar status`; the options are those of sidecar.run."""
    answer = sidecar.run("status", "--format", "json", **options)
    assert answer.stdout, answer.stderr
    [instance] = answer.json()["instances"]
    return instance
