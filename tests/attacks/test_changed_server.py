"""The OS user of a running server changes its files, and root, who asks what a restart needs, runs nothing of that user's."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import sidecar
from harness.cluster import Cluster
from harness.own_programs import own_programs, replace_server

pytestmark = pytest.mark.any_major


@pytest.fixture
def why(tmp_path, root) -> Callable[[Cluster], str]:
    """Why the next start of a running server is unknown to `size`, the one command that asks."""
    def why(server: Cluster) -> str:
        answer = sidecar.run("size", "--format", "json", "--state-dir", tmp_path)
        assert answer.status == sidecar.UNKNOWN, answer
        [one] = [one for one in answer.json()["not_counted"] if one["instance"] == str(server.data)]
        return one["reason"]
    return why


def owned(path: Path, text: str) -> Path:
    """A file of the server's user, which everybody may read and run."""
    path.write_text(text)
    owner = pwd.getpwnam("postgres")
    os.chown(path, owner.pw_uid, owner.pw_gid)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("settings", "refused"), [
    ({"shared_preload_libraries": "{root}/evil"}, "evil\", which is not run"),
    ({"shared_preload_libraries": "$libdir/../../../../..{root}/evil"}, "evil\", which is not run"),
    ({"shared_preload_libraries": "evil", "dynamic_library_path": "{root}"}, "dynamic_library_path is set"),
    ({"shared_preload_libraries": "plpgsql"}, "library plpgsql"),
])
def test_a_library_of_its_own(new_cluster, why, settings: dict[str, Any], refused):
    server = new_cluster(shared_buffers="16MB").start()
    owned(server.root / "evil.so", "never loaded")
    server.conf(**{name: value.format(root=server.root) for name, value in settings.items()})
    assert refused in why(server)


def test_a_program_of_its_own(new_cluster, tmp_path, root):
    """The server runs a copy of the program in a directory of its user, where a script takes its name: what runs is asked alone."""
    plain = new_cluster()
    install = own_programs(plain.install, plain.root / "own")
    owner = pwd.getpwnam("postgres")
    for path in [plain.root / "own", *(plain.root / "own").rglob("*")]:
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    server = new_cluster(install=install, shared_buffers="16MB").start()
    server.conf(shared_buffers="20MB")
    ran = owned(plain.root / "ran", "")
    replace_server(install, f"echo ran > {ran}; exec {{real}} \"$@\"")
    sidecar.run("size", "--state-dir", tmp_path)
    assert ran.read_text() == ""


def test_an_environment_with_libraries(new_cluster, why):
    server = new_cluster(shared_buffers="16MB")
    server.start(through=["env", f"LD_LIBRARY_PATH={server.root}"])
    server.conf(shared_buffers="20MB")
    assert "its environment has LD_LIBRARY_PATH" in why(server)


def test_no_secret_on_a_command_line(new_cluster, tmp_path):
    """Every user may read the command line of a program while it runs."""
    server = new_cluster(shared_buffers="16MB").start()
    server.conf(primary_conninfo="password=of-a-primary", archive_command="curl -u me:of-an-archive", shared_buffers="20MB")
    trace = tmp_path / "trace"
    sidecar.run("size", "--state-dir", tmp_path, through=["strace", "-f", "-e", "trace=execve", "-s", "4096", "-v", "-o", trace])
    called = trace.read_text()
    assert "shared_buffers=20MB" in called and "of-a" not in called
