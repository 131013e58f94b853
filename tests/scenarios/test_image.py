"""The image of the extension's files alone, mounted beside a server as CloudNativePG does (PostgreSQL 18 and newer)."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster import Cluster, Install, Unsupported
from harness.poll import until
from harness.processes import CommandFailed, run
from harness.status import EXTENSION
from harness.traces import removed_if_new

pytestmark = pytest.mark.own_servers

PROJECT = Path(__file__).parents[2]
INSTALL = Install.find()
FILES = {f"lib/{EXTENSION}.so", f"share/extension/{EXTENSION}.control", f"licenses/{EXTENSION}/copyright"}


def make_image(directory: Path) -> None:
    run("make", "-C", str(PROJECT), "--no-print-directory", "image", f"PG_CONFIG={INSTALL.pg_config}", f"IMAGE_DIR={directory}")


def files_below(root: Path) -> set[str]:
    return {str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()}


def tell_apart(image: Path) -> None:
    """A comment that only the image's extension has."""
    control = image / "share/extension" / f"{EXTENSION}.control"
    control.write_text(control.read_text() + "\ncomment = 'from the image'\n")


def from_the_image(server: Cluster, mounted: Path) -> None:
    """The server preloads the library, and creates the extension, from there and not from the installation."""
    server.conf(extension_control_path=f"{mounted}/share:$system", dynamic_library_path=f"{mounted}/lib:$libdir",
                shared_preload_libraries=EXTENSION)
    # The mount is the server's alone, as a container's is.
    server.start(through=["unshare", "--mount", "sh", "-c", 'mount --bind -o ro "$1" "$2" && shift 2 && exec "$@"', "sh",
                          str(server.root / "image"), str(mounted)])
    server.sql(f"CREATE EXTENSION {EXTENSION}")
    assert server.sql("SELECT obj_description(oid, 'pg_extension') AS comment FROM pg_extension WHERE extname = %s",
                      EXTENSION) == [{"comment": "from the image"}]
    maps = Path(f"/proc/{server.postmaster}/maps").read_text()
    assert f"{mounted}/lib/{EXTENSION}.so" in maps
    assert f"{INSTALL.ask('pkglibdir')}/{EXTENSION}.so" not in maps
    [mount] = [line.split() for line in Path(f"/proc/{server.postmaster}/mountinfo").read_text().splitlines()
               if line.split()[4] == str(mounted)]
    assert "ro" in mount[5].split(",") and not any(mounted.iterdir()), "read-only, and nobody else's"
    until("the worker's first record", lambda: server.sql("SELECT event FROM hugepage_history"))
    [row] = server.sql("SELECT generation, (SELECT will_start FROM hugepage_preflight()) AS will_start FROM hugepage_status")
    assert row == {"generation": 1, "will_start": True}, "a start to come finds the library there, too"


if INSTALL.major >= 18:

    @pytest.fixture
    def server(new_cluster, root) -> Cluster:
        return new_cluster()

    @pytest.fixture
    def mounted(server) -> Path:
        """Where the image is mounted. The operator's place is /extensions/NAME, of its pod."""
        mounted = server.root / "extensions" / EXTENSION
        mounted.mkdir(parents=True)
        return mounted

    def test_files_and_metadata(tmp_path):
        make_image(tmp_path / "image")
        made = files_below(tmp_path / "image")
        control = (tmp_path / "image/share/extension" / f"{EXTENSION}.control").read_text()
        version = re.search(r"^default_version = '(.*)'", control, re.MULTILINE).group(1)
        assert f"share/extension/{EXTENSION}--{version}.sql" in made
        assert made == FILES | {"Dockerfile"} | {name for name in made if re.fullmatch(
            rf"share/extension/{EXTENSION}--[\w.-]+\.sql", name)}
        assert "@" not in (tmp_path / "image/Dockerfile").read_text()

    def test_licences_are_those_of_what_is_linked():
        """Of the library, which has its symbols, as a script decides, for CloudNativePG's catalogue."""
        library = Path(INSTALL.ask("pkglibdir"), f"{EXTENSION}.so")
        linked = run("scripts/licences", "--linked", str(library), cwd=PROJECT).splitlines()[-1].split(" AND ")
        [listed] = re.findall(r"licenses +=( .*)", (PROJECT / "packaging/cloudnative-pg/metadata.hcl.in").read_text())
        assert linked == json.loads(listed)

    def test_mounted(server, mounted):
        make_image(server.root / "image")
        tell_apart(server.root / "image")
        from_the_image(server, mounted)

    def test_an_older_server_has_no_image(tmp_path):
        """make image says so before it makes anything."""
        pg_config = tmp_path / "pg_config"
        pg_config.write_text(f'#!/bin/sh\ncase $1 in --version) echo PostgreSQL 17.1 ;; *) exec {INSTALL.pg_config} "$@" ;; esac\n')
        pg_config.chmod(0o755)
        with pytest.raises(CommandFailed, match="needs 18 or newer"):
            run("make", "-C", str(PROJECT), "image", f"PG_CONFIG={pg_config}", f"IMAGE_DIR={tmp_path}/image")
        assert not (tmp_path / "image").exists()

    @pytest.fixture
    def buildah(server) -> Iterator[list[str]]:
        """The command, with images and containers in the server's directory."""
        if not shutil.which("buildah"):
            raise Unsupported("the image was not built from its Dockerfile: install buildah and netavark")
        storage = server.root / "images"
        command = ["buildah", "--storage-driver", "vfs", "--root", str(storage / "root"), "--runroot", str(storage / "run")]
        # Wherever its storage is, it keeps a list of layers below the directory of root's containers.
        with removed_if_new(Path("/var/lib/containers")):
            try:
                yield command
            finally:
                subprocess.run([*command, "rm", "--all"], capture_output=True, check=True)

    def test_built_and_mounted(server, mounted, buildah, tmp_path):
        make_image(tmp_path / "image")
        files = files_below(tmp_path / "image") - {"Dockerfile"}
        tell_apart(tmp_path / "image")
        run(*buildah, "build", "--isolation", "chroot", "--tag", EXTENSION, str(tmp_path / "image"),
            env={**os.environ, "HOME": str(tmp_path)})
        config = json.loads(run(*buildah, "inspect", "--type", "image", EXTENSION))["OCIv1"]["config"]
        [version] = re.findall(r"^version = \"(.*)\"", (PROJECT / "Cargo.toml").read_text(), re.MULTILINE)[:1]
        labels = config["Labels"]
        assert config["User"] == "65532:65532" and "@" not in str(labels)
        assert labels["io.cloudnativepg.image.base.pgmajor"] == str(INSTALL.major)
        assert {labels["org.opencontainers.image.version"], labels["io.cloudnativepg.image.sql.version"]} == {version}
        assert f'licenses="{labels["org.opencontainers.image.licenses"]}"' in (tmp_path / "image/Dockerfile").read_text()
        container = run(*buildah, "from", EXTENSION).strip()
        content = Path(run(*buildah, "mount", container).strip())
        assert files_below(content) == files
        owners = {(file.stat().st_uid, file.stat().st_mode & 0o222) for file in content.rglob("*") if file.is_file()}
        assert owners == {(0, 0o200)}
        # The operator's kubelet mounts it where only root could look into the storage.
        (server.root / "image").mkdir()
        run("mount", "--bind", str(content), str(server.root / "image"))
        try:
            from_the_image(server, mounted)
        finally:
            run("umount", str(server.root / "image"))
