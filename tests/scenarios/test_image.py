"""The extension's files in a directory of their own, as an extension image is mounted (PostgreSQL 18 and newer)."""

import shutil
from pathlib import Path

from harness.catalog import read_everything
from harness.cluster import Install
from harness.status import EXTENSION

if Install.find().major >= 18:

    def test_from_a_directory_outside_the_installation(new_cluster):
        """As packaging/image lays them out; the server runs these files and not the installed ones."""
        server = new_cluster()
        image, install = server.root / "image", server.install
        control = f"{EXTENSION}.control"
        for directory, files in (("lib", [Path(install.ask("pkglibdir"), f"{EXTENSION}.so")]),
                                 ("share/extension", Path(install.ask("sharedir"), "extension").glob(f"{EXTENSION}*"))):
            (image / directory).mkdir(parents=True)
            for file in files:
                shutil.copy(file, image / directory)
        text = (image / "share/extension" / control).read_text()
        (image / "share/extension" / control).write_text(text + "\ncomment = 'from the image'\n")

        server.conf(extension_control_path=f"{image}/share:$system", dynamic_library_path=f"{image}/lib:$libdir",
                    shared_preload_libraries=EXTENSION)
        server.start()
        server.sql(f"CREATE EXTENSION {EXTENSION}")
        assert server.sql("SELECT obj_description(oid, 'pg_extension') AS comment FROM pg_extension WHERE extname = %s",
                          EXTENSION) == [{"comment": "from the image"}]
        read_everything(server, "postgres")
        mapped = Path(f"/proc/{server.postmaster}/maps").read_text()
        assert f"{image}/lib/{EXTENSION}.so" in mapped
        assert f"{install.ask('pkglibdir')}/{EXTENSION}.so" not in mapped
