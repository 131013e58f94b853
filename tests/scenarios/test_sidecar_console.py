"""What hugepage-sidecar prints on a console that does not know its width, and on a narrow one."""

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

pytestmark = [pytest.mark.any_major, pytest.mark.no_server]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A host with servers, one of them in base pages, and an Oracle instance."""
    return busy_host(tmp_path / "host").directory


def with_blanks(text: str) -> list[str]:
    """The lines that end in a blank."""
    return [line for line in text.split("\n") if line != line.rstrip()]


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
    _time, _verdict, table, *_ = re.sub(r"\x1b\[[0-9;]*m", "", shown).split("\n\n")
    rows = table.split("\n")
    assert 20 < max(map(len, rows)) <= 60, shown
