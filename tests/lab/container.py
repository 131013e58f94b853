"""Runs in namespaces of its own (test_docker_like.py): starts a server, and prints what it, the sidecar and the kernel say."""

import json
import subprocess

from instance import sidecar_row

from harness.cluster import Cluster
from harness.refusal import need_the_host
from harness.smaps import main_mapping
from harness.status import create_extension

if __name__ == "__main__":
    # The answer is kept: root may read maps here, also where /sys is read-only.
    need_the_host()
    subprocess.run(["mount", "-o", "remount,bind,ro", "/sys"], check=True)
    with Cluster() as server:
        create_extension(server.start())
        [row] = server.sql("SELECT * FROM hugepage_status")
        print(json.dumps({"view": row, "sidecar": sidecar_row(), "landed_in": main_mapping(server.postmaster).landed_in},
                         default=str))
