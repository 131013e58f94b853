"""The directory and the files: owner and mode, refused directories, and the files after a failure."""

import grp
import os
import stat
import subprocess

import pytest
from harness import oracle_loader
from harness.oracle_files import script, write
from harness.processes import run
from harness.sidecar import binary
from snapshots import HOST, TABLES

pytestmark = pytest.mark.no_server

INSTALL = script("install-sql")
NAMES = sorted(table.location for table in TABLES.values())


def attempt(directory, *options):
    """Write files without records."""
    command = [binary(), "oracle", "write", directory, "--records", *options]
    return subprocess.run(command, input="{}\n", capture_output=True, text=True)


def refused(directory, *options):
    done = attempt(directory, *options)
    assert done.returncode == 3 and not any(path.suffix == ".dat" for path in directory.glob("*"))
    return done.stderr


def test_files_get_the_group_of_the_directory(directory, root):
    os.chown(directory, -1, grp.getgrnam("daemon").gr_gid)
    assert attempt(directory).returncode == 0
    for name in NAMES:
        found = (directory / name).stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, grp.getgrnam("daemon").gr_gid, 0o640)
    assert sorted(path.name for path in directory.glob("[!.]*")) == NAMES


def test_mode(directory, root):
    write(directory, HOST, "--mode", "440")
    for name in NAMES:
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o440
    for private in directory.glob(".*"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600


@pytest.mark.parametrize("option", [("--mode", "666"), ("--mode", "755"), ("--mode", "9")])
def test_wrong_options(directory, option):
    done = attempt(directory, *option)
    assert done.returncode == 64 and option[0] in done.stderr and list(directory.iterdir()) == []


def test_symbolic_links(directory):
    real = directory / "real" / "place"
    real.mkdir(parents=True)
    (directory / "link").symlink_to("real")
    (directory / "last").symlink_to("real/place")
    for path in (directory / "link" / "place", directory / "last"):
        assert "symbolic link" in refused(path) and "KUP-03037" in refused(path)
    assert attempt(real).returncode == 0


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o757])
def test_directory_writable_by_others(directory, mode):
    directory.chmod(mode)
    assert "may write" in refused(directory)
    directory.chmod(0o755)
    assert attempt(directory).returncode == 0


def test_unsafe_parent_directory(directory, root):
    inner = directory / "open" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o777)
    assert "may write" in refused(inner)
    inner.parent.chmod(0o755)
    os.chown(inner.parent, 65534, -1)
    assert "belongs to uid 65534" in refused(inner)
    os.chown(inner.parent, 0, -1)
    os.chown(inner, 65534, -1)
    assert "belongs to uid 65534" in refused(inner)


def test_invalid_paths(directory):
    assert "symbolic link" in refused(directory.parent / directory.name / "..")
    done = subprocess.run([binary(), "oracle", "write", directory.name, "--records"], input="{}\n", cwd=directory.parent,
                          capture_output=True, text=True)
    assert done.returncode == 3 and "absolute" in done.stderr
    assert "No such file" in refused(directory / "nothing")
    (directory / "file").touch()
    assert attempt(directory / "file").returncode == 3


def test_planted_links_are_replaced(directory, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in NAMES:
        (directory / f".{name}.new").symlink_to(victim)
        (directory / name).symlink_to(victim)
    write(directory, HOST)
    assert victim.read_text() == "precious"
    assert all(not (directory / name).is_symlink() for name in NAMES)


def test_full_disk_leaves_the_old_files(directory, root):
    """A snapshot that does not fit completely replaces no file."""
    run("mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", str(directory))
    try:
        write(directory, HOST)
        before = {name: (directory / name).read_bytes() for name in NAMES}
        # Only the first file fits.
        many = {**HOST, "findings": [{"reason": "r " * 190, "priority": 1}] * 200}
        with pytest.raises(AssertionError, match="No space left on device"):
            write(directory, many)
        assert {name: (directory / name).read_bytes() for name in NAMES} == before
        assert not list(directory.glob(".hp_*"))
        (directory / "filler").write_bytes(b"x" * 4096)
        write(directory, HOST)
        assert oracle_loader.load(INSTALL, directory)["hp_finding"]
    finally:
        run("umount", str(directory))


def test_killed_writer_leaves_complete_files(directory):
    """Temporary files of a killed writer have no effect."""
    first = write(directory, HOST)
    for name in NAMES:
        (directory / f".{name}.new").write_text("format_version|snap")
    assert {row["snapshot_id"] for rows in oracle_loader.load(INSTALL, directory).values() for row in rows} == {first}
    second = write(directory, HOST)
    assert {row["snapshot_id"] for rows in oracle_loader.load(INSTALL, directory).values() for row in rows} == {second}
    assert second > first and not list(directory.glob(".hp_*"))
