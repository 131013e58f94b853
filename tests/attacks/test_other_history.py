"""A server that calls itself another one: what it runs as, and the files that it is in, keep their histories apart."""

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_door import SERVER, fake

from harness import sidecar
from harness.units import MB

pytestmark = pytest.mark.any_major

POSTGRES = pwd.getpwnam("postgres").pw_uid
OTHER = pwd.getpwnam("daemon").pw_uid
"""Another service account, whose servers count too."""


@pytest.fixture
def place(root) -> Iterator[Path]:
    place = Path(f"/tmp/pg_hugepages-history-{os.getpid()}")
    for name in ("", "data", "state", "scripts"):
        (place / name).mkdir(mode=0o755)
    os.chown(place / "data", POSTGRES, -1)
    (place / "scripts/server.py").write_text(SERVER)
    yield place
    subprocess.run(["rm", "-rf", place], check=True)


@contextmanager
def in_a_container(data: Path, script: Path) -> Iterator[None]:
    """The same path, user and name, in a mount namespace with other files there."""
    inside = f"""mount -t tmpfs -o mode=755 none {data} && chown {POSTGRES} {data} && cd {data} && echo 15 >PG_VERSION &&
        exec setpriv --reuid={POSTGRES} --regid={POSTGRES} --clear-groups bash -c 'exec -a postgres python3 {script} {64 * MB}'"""
    process = subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", inside], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.wait()


def histories_after_survey(place: Path) -> dict[str, str]:
    """The histories of servers there after another survey, by the names of their files."""
    answer = sidecar.run("watch", "--once", "--state-dir", place / "state", "--service-account", str(OTHER))
    assert "could not write" not in answer.stderr, answer
    return {path.name: path.read_text() for path in (place / "state").glob(f"postgresql-*{place.name}-data.*history")}


def test_neither_a_container_nor_another_user_adds_to_a_history(place):
    data, plain = place / "data", str(place / "data").strip("/").replace("/", "-")
    with fake(data, size=64 * MB, uid=POSTGRES):
        own = histories_after_survey(place)
        assert list(own) == [f"postgresql-{plain}.{POSTGRES}.history"]
    with in_a_container(data, place / "scripts/server.py"):
        of_container = histories_after_survey(place)
        [name] = set(of_container) - set(own)
        assert name.startswith(f"postgresql-{plain}.{POSTGRES}.in-") and of_container.items() >= own.items()
    with fake(data, size=64 * MB, uid=OTHER):
        of_other = histories_after_survey(place)
        assert set(of_other) - set(of_container) == {f"postgresql-{plain}.{OTHER}.history"}
        assert of_other.items() >= of_container.items()


def test_a_mount_namespace_of_a_service_is_no_container(place):
    """As systemd makes them for PrivateTmp=: the data directory is the host's."""
    with fake(place / "data", size=64 * MB, uid=POSTGRES):
        own = histories_after_survey(place)
    command = ["unshare", "--mount", "--propagation=private", "setpriv", f"--reuid={POSTGRES}", f"--regid={POSTGRES}", "--clear-groups",
               "bash", "-c", f"exec -a postgres python3 {place}/scripts/server.py {64 * MB}"]
    process = subprocess.Popen(command, cwd=place / "data", stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        assert list(histories_after_survey(place)) == list(own)
    finally:
        process.kill()
        process.wait()
