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
from harness.prometheus import samples
from harness.sidecar import UNKNOWN
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


COUNTED = ("--service-account", str(OTHER))


def series(place: Path) -> dict[str, str]:
    """The shared memory of each server there, by the name of its series."""
    metrics = samples(sidecar.run("metrics", *COUNTED).stdout)
    named = {dict(labels).get("name", ""): value for (name, labels), value in metrics.items() if name == "hugepage_shared_memory_bytes"}
    return {name: value for name, value in named.items() if str(place) in name}


def test_a_series_stays_its_servers(place):
    """Of servers that call themselves the same each has a name that it keeps, whichever of them starts and stops."""
    data, script = place / "data", place / "scripts/server.py"
    with fake(data, size=64 * MB, uid=POSTGRES), in_a_container(data, script), in_a_container(data, script), \
            fake(data, size=96 * MB, uid=OTHER):
        [own, *others] = sorted(series(place))
        assert own == str(data) and len(others) == 3 and f"{data} of uid {OTHER}" in others, others
    with fake(data, size=96 * MB, uid=OTHER):
        assert list(series(place)) == [f"{data} of uid {OTHER}"]
    with fake(data, size=64 * MB, uid=POSTGRES):
        assert list(series(place)) == [str(data)]


def test_nobody_stands_for_a_stopped_server(place):
    """Whoever works in its directory, under its name, and is another user."""
    data = place / "data"
    (data / "PG_VERSION").write_text("15\n")
    (data / "postgresql.conf").write_text("huge_pages = on\n")
    for name in ("PG_VERSION", "postgresql.conf"):
        os.chown(data / name, POSTGRES, -1)

    def stopped() -> list[str]:
        answer = sidecar.run("size", *COUNTED, "--postgresql-data", data, "--format", "json")
        return [one["reason"] for one in answer.json()["not_counted"] if one["instance"] == str(data) and answer.status == UNKNOWN]
    with fake(data, size=64 * MB, uid=OTHER):
        assert stopped()
    with fake(data, size=64 * MB, uid=POSTGRES):
        assert not stopped()


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
