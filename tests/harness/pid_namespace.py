"""A server in a PID namespace of its own, stopped in order at the end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from harness.cluster import SUPERUSER, Cluster
from harness.poll import until
from harness.processes import children


@contextmanager
def server_in_pid_namespace(server: Cluster, *options: str, as_process_1: bool) -> Iterator[Cluster]:
    """Start a server there with options of the command line, and wait until it answers; root alone may.

    `as_process_1`: the postmaster is process 1 and /proc is the namespace's, as in most containers. Else runuser(1) is
    process 1, and /proc is the host's.
    """
    postgres = [server.install.bindir / "postgres", "-D", server.data, *options]
    if as_process_1:
        command = ["--mount-proc", "setpriv", f"--reuid={SUPERUSER}", f"--regid={SUPERUSER}", "--clear-groups", *postgres]
    else:
        command = ["runuser", "-u", SUPERUSER, "--", *postgres]
    with open(server.log_file, "w") as log:
        inside = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child=KILL", *command], stdout=log, stderr=log,
                                  cwd=server.root)
    try:
        until("the server to answer", server.ready)
        yield server
        # Killed, it would leave its dynamic shared memory and its System V segment.
        for process in children(inside.pid):
            for postmaster in [process] if as_process_1 else children(process):
                os.kill(postmaster, signal.SIGINT)
        until("the server to stop", lambda: inside.poll() is not None)
    finally:
        inside.kill()
        inside.wait()
        # It names a process of the namespace, which out here is another's.
        (server.data / "postmaster.pid").unlink(missing_ok=True)
