"""What hugepage-sidecar prints, as text: line ends, and a console that does not know its width."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from harness import sidecar
from harness.host_tree import busy_host

pytestmark = pytest.mark.any_major

MANIFESTS = Path(__file__).parents[2] / "crates" / "hugepage-sidecar" / "tests" / "manifests"

CALLS = {
    "status": ["status"],
    "size": ["size", "--explain", "--sessions", "1024"],
    "benefit": ["benefit", "--interval", "100ms"],
    "check": ["check"],
    "watch": ["watch", "--once"],
    "metrics": ["metrics"],
    "report": ["report", "--html", "-"],
    "apply": ["apply", "--pages", "1"],
    "capture": ["capture", "{directory}/capture"],
    "lint": ["lint", str(MANIFESTS / "cnpg-short.yaml")],
    "oracle prepare": ["oracle", "prepare", "{directory}"],
    "oracle write": ["oracle", "write", "{directory}"],
    "oracle print": ["oracle", "print", "hp_pool.dat"],
    "oracle cluster-sql": ["oracle", "cluster-sql", "--shared-dir", "/shared", "--node", "rac1"],
    **{f"oracle {name}": ["oracle", name] for name in ("install-sql", "upgrade-sql", "uninstall-sql", "live-sql", "cross-check-sql",
                                                       "metric-sql", "metric-xml", "trend-sql", "trend-uninstall-sql", "columns")},
}
"""Each command, and a call of it that prints what it has."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A host with servers, one of them in base pages, and an Oracle instance."""
    return busy_host(tmp_path / "host").directory


def commands(*of: str) -> set[str]:
    """The names that the help lists below `Commands:`."""
    listed = sidecar.run(*of, "--help").stdout.split("Commands:\n")[1].split("\n\n")[0]
    return set(re.findall(r"(?m)^  (\S+)", listed)) - {"help"}


def with_blanks(text: str) -> list[str]:
    """The lines that end in a blank."""
    return [line for line in text.split("\n") if line != line.rstrip()]


def test_kernel_advisories_that_concern_an_instance(tree, tmp_path):
    def told(release):
        place = tree / "proc/sys/kernel/osrelease"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{release}\n")
        answer = sidecar.run("--root", tree, "status", "--format", "json", "--state-dir", tmp_path)
        rows = answer.json()["kernel_advisories"]
        table = " ".join(sidecar.run("--root", tree, "status", "--state-dir", tmp_path).stdout.split())
        assert all(" ".join(row["detail"].split()) in table for row in rows), table
        return {row["name"]: (row["applies"], len(row["instances"])) for row in rows}

    assert told("6.12.40+deb13-amd64") == {"kernel_pmd_sharing": (True, 2)}
    assert told("7.0.0-14-generic") == {"kernel_no_preempt_none": (True, 1)}
    assert told("6.12.0-55.el10.x86_64") == {"kernel_pmd_sharing": (None, 2), "kernel_no_preempt_none": (None, 1)}


def test_every_command_is_called():
    assert CALLS.keys() == commands() - {"oracle"} | {f"oracle {name}" for name in commands("oracle")}


@pytest.mark.parametrize("command", CALLS)
def test_no_line_ends_in_a_blank(tree, tmp_path, command):
    directory = tmp_path / "made"
    directory.mkdir()
    call = [word.format(directory=directory) for word in CALLS[command]]
    state = ["--state-dir", str(tmp_path / "state")] if "--state-dir" in sidecar.run(*command.split(), "--help").stdout else []
    answer = sidecar.run("--root", tree, *call, *state)
    assert answer.stdout or answer.stderr or list(directory.iterdir()), answer
    assert answer.status != sidecar.USAGE or command in ("apply", "benefit"), answer    # those are for this host
    for text in (answer.stdout, answer.stderr, *(sidecar.run(*command.split(), flag).stdout for flag in ("-h", "--help"))):
        assert with_blanks(text) == []


def on_console(*arguments: str | Path, columns: int, **environment: str) -> str:
    """What a call prints on a terminal of so many columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 0, columns, 0, 0))
    with subprocess.Popen(sidecar.command(*arguments), stdin=its, stdout=its, stderr=its, start_new_session=True,
                          env={**os.environ, "TERM": "vt220", **environment}):
        os.close(its)
        printed = b""
        try:
            while some := os.read(ours, 1 << 16):
                printed += some
        except OSError:    # EIO: it has ended (pty(7))
            pass
        finally:
            os.close(ours)
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["status", "size", "--help"])
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colour", "no-colour"])
def test_a_console_without_a_width(tree, tmp_path, command, environment):
    """A serial console reports a width of 0: what it shows is what a pipe gets, 80 columns wide."""
    call = ["--root", tree, command, *([] if command == "--help" else ["--state-dir", tmp_path])]
    # Of this environment too: Python's readline, which some versions of pytest load, sets COLUMNS where os.environ has none.
    piped = sidecar.run(*call, env=os.environ).stdout
    shown = on_console(*call, columns=0, **environment)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert (plain == shown) == ("NO_COLOR" in environment or command == "size")
    first_line = 1 if command == "status" else 0    # with the time
    assert plain.split("\n")[first_line:] == piped.split("\n")[first_line:]
    assert with_blanks(shown) == []


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colour", "no-colour"])
def test_a_narrow_console(tree, tmp_path, environment):
    """Tables keep to the width that a console does report."""
    shown = on_console("--root", tree, "status", "--state-dir", tmp_path, columns=60, **environment)
    rows = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n\n")[1].split("\n")
    assert 20 < max(map(len, rows)) <= 60, shown
