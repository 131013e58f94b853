"""A container of a pod, by a real runtime (runc, crun) from an OCI bundle as a kubelet has it made: its groups, limits and mounts."""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.cgroup import controller_enabled
from harness.cluster import SUPERUSER, Cluster, Unsupported
from harness.lock import pool_lock
from harness.poll import until
from harness.pool import pools
from harness.processes import run
from harness.traces import made_directory, removed_if_new
from harness.units import GB, MB

POD, CONTAINER, NAMESPACE = "db-0", "postgres", "shop"
UID = "5d5cbcb6-6d1c-4b7c-9e2e-0d3f7c5a8e11"
"""Of the pod, which is in the names of its group and of the kubelet's directories."""

GROUP = f"kubepods/burstable/pod{UID}"
OTHER_GROUP = "kubepods/burstable/pod77e7f1c6-90f4-4d5e-8a4f-52b0d1c9d3aa"
"""Of the DaemonSet's pod."""

SERVICE = "pg_hugepages-db.service"
"""The group of a service that starts a container by Podman."""

CONTAINERD = Path("/run/containerd")
"""Where containerd has the directories of its containers, and their shims' sockets."""

CONTAINERD_SETTINGS = """
version = 2
root = "{directory}/root"
state = "{state}"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{state}/containerd.sock"
"""

PODMAN = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime = "{runtime}"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
pids_limit = 0
seccomp_profile = "unconfined"
[network]
network_config_dir = "{directory}/networks"
"""
"""Podman's settings: nothing of it is outside of the directory of a test."""

HIDDEN = {"dev", "proc", "run", "sys", "tmp", "lost+found"}
"""What of the host's root a container gets anew."""

# runc 1.1.10, changelog: "Support for hugetlb.<pagesize>.rsvd limiting and accounting".
FIRST_RUNC_WITH_RSVD = (1, 1, 10)


@dataclass(frozen=True)
class Runtime:
    """A program that runs a bundle."""

    name: str

    @classmethod
    def find(cls, name: str) -> "Runtime":
        """The installed one; Unsupported without."""
        if not shutil.which(name):
            raise Unsupported(f"no container of {name} was tried: it is not installed")
        return cls(name)

    @cached_property
    def version(self) -> tuple[int, ...]:
        return tuple(map(int, re.search(r"version (\d+)\.(\d+)\.?(\d*)", run(self.name, "--version")).groups("0")))

    @property
    def limits_reservations(self) -> bool:
        """Whether it writes `rsvd.max`, too: what is known of its versions, and a test compares with what it writes."""
        return self.name == "runc" and self.version >= FIRST_RUNC_WITH_RSVD


class Pod:
    """The group of a pod, and the mount namespace in which its runtime works, which has one version of cgroups alone."""

    def __init__(self, runtime: Runtime, holder: int, limit: int | None, version: int, directory: Path, first_user: int, kubelet_reserves: bool) -> None:
        self.runtime, self.limit, self.version, self.directory, self._first_user = runtime, limit, version, directory, first_user
        self._kubelet_reserves = kubelet_reserves
        self._holder = holder
        self.name = "6e4b" * 16
        """The identifier of its container, as long as containerd's."""

    @property
    def limits_reservations(self) -> bool:
        """Whether a limit is on what is reserved, too: of the container, or of the pod."""
        return self.runtime.limits_reservations or self._kubelet_reserves

    @property
    def node(self) -> list[str]:
        """A command that runs another one as on the node, where the sidecar runs."""
        return ["nsenter", f"--mount=/proc/{self._holder}/ns/mnt", "--"]

    @property
    def _top(self) -> str:
        return "/sys/fs/cgroup" if self.version == 2 else "/sys/fs/cgroup/hugetlb"

    def make_as_the_kubelet(self) -> None:
        """Make the pod's group, with the sum of its containers' limits, and the link to its container's log."""
        file = "hugetlb.2MB.max" if self.version == 2 else "hugetlb.2MB.limit_in_bytes"
        enable = "echo +hugetlb >cgroup.subtree_control" if self.version == 2 else ":"
        limit = [] if self.limit is None else [f"echo {self.limit} >{file}"]
        if self._kubelet_reserves:
            limit.append(f"echo {self.limit} >hugetlb.2MB.rsvd.max")
        steps = [f"mkdir -p {part} && cd {part} && {enable}" for part in GROUP.split("/")]
        link = f"/var/log/containers/{POD}_{NAMESPACE}_{CONTAINER}-{self.name}.log"
        log = f"mkdir {Path(link).parent} && ln -s /var/log/pods/{NAMESPACE}_{POD}_{UID}/{CONTAINER}/0.log {link}"
        run(*self.node, "sh", "-ec", "\n".join([log, f"cd {self._top}", *steps, *limit]))

    def remove(self) -> None:
        """Remove the groups, when their processes have ended."""
        run(*self.node, "sh", "-c", "find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} ';'")

    def bundle(self, command: Sequence[str | Path], writable: Sequence[Path]) -> list[str]:
        """What runs the command as the server's user; these directories are the host's."""
        owner = pwd.getpwnam(SUPERUSER)
        root = self.directory / "rootfs"
        shutil.rmtree(root, ignore_errors=True)
        kubelet = self.directory / f"var/lib/kubelet/pods/{UID}"
        terminated = kubelet / f"containers/{CONTAINER}/0a1b2c3d"
        account = kubelet / "volumes/kubernetes.io~projected/kube-api-access-x7x7x"
        for path in (root / "etc", root / "dev", root / "proc", root / "sys", root / "tmp", terminated.parent, account):
            path.mkdir(parents=True, exist_ok=True)
        (root / "tmp").chmod(0o1777)
        (kubelet / "etc-hosts").write_text(f"# Kubernetes-managed hosts file.\n127.0.0.1 localhost\n10.0.0.7 {POD}\n")
        terminated.touch()
        (account / "namespace").write_text(NAMESPACE)
        (root / "etc/hostname").write_text(f"{POD}\n")
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
            *SYS,
            *map(bind, of_image(root)),
            bind(kubelet / "etc-hosts", "/etc/hosts", "rw"),
            bind(terminated, "/dev/termination-log", "rw"),
            bind(account, "/run/secrets/kubernetes.io/serviceaccount"),
            *(bind(path, options="rw") for path in writable),
        ]
        config = {
            "ociVersion": "1.0.2", "root": {"path": "rootfs"}, "hostname": POD, "mounts": mounts,
            "process": {"user": {"uid": owner.pw_uid, "gid": owner.pw_gid}, "args": [str(word) for word in command], "cwd": "/",
                        "env": ["PATH=/usr/bin:/bin", f"HOSTNAME={POD}", "KUBERNETES_SERVICE_HOST=10.96.0.1", "LC_ALL=C"],
                        "capabilities": {}, "noNewPrivileges": True},
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "cgroup")],
                      "cgroupsPath": f"/{GROUP}/{self.name}", "resources": {"hugepageLimits": limits(self.limit)}},
        }
        if self._first_user:
            # A pod with hostUsers: false.
            mapped = [{"containerID": 0, "hostID": self._first_user, "size": 1 << 16}]
            config["linux"] |= {"uidMappings": mapped, "gidMappings": mapped}
            config["linux"]["namespaces"] += [{"type": "user"}, {"type": "network"}]
            users = f"{self._first_user + owner.pw_uid}:{self._first_user + owner.pw_gid}"
            run("chown", "--recursive", users, self.directory, *writable)
        (self.directory / "config.json").write_text(json.dumps(config))
        return [*self._runtime, "run", "--bundle", str(self.directory), self.name]

    def run_beside(self, container: dict, program: Path, volumes: dict[str, Path]) -> subprocess.CompletedProcess[str]:
        """Run a container of a DaemonSet with hostPID as its manifest says, whose image is one static program; `volumes` by their names."""
        directory, context = self.directory / "beside", container["securityContext"]
        shutil.rmtree(directory, ignore_errors=True)
        (directory / "rootfs/usr/bin").mkdir(parents=True)
        shutil.copy(program, directory / "rootfs/usr/bin")
        for path in ("dev", "etc", "proc", "sys"):
            (directory / "rootfs" / path).mkdir()
        hosts = directory / "var/lib/kubelet/pods/77/etc-hosts"
        hosts.parent.mkdir(parents=True)
        hosts.touch()
        capabilities = [f"CAP_{name}" for name in context["capabilities"]["add"]]
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
            *SYS, bind(hosts, "/etc/hosts"),
            *(bind(volumes[mount["name"]], mount["mountPath"], "ro" if mount.get("readOnly") else "rw") for mount in container["volumeMounts"]),
        ]
        for mount in container["volumeMounts"]:
            (directory / "rootfs" / mount["mountPath"].strip("/")).mkdir()
        config = {
            "ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": context["readOnlyRootFilesystem"]}, "mounts": mounts,
            "process": {"user": {"uid": context["runAsUser"], "gid": 0}, "args": [f"/usr/bin/{program.name}", *container["args"]], "cwd": "/",
                        "env": ["PATH=/usr/bin"], "noNewPrivileges": not context["allowPrivilegeEscalation"],
                        "capabilities": {kind: capabilities for kind in ("bounding", "effective", "permitted")}},
            # Runtimes of Kubernetes make a cgroup namespace where there is version 2 alone.
            "linux": {"namespaces": [{"type": kind} for kind in ("ipc", "uts", "mount", "network", *(["cgroup"] if self.version == 2 else []))],
                      "cgroupsPath": f"/{OTHER_GROUP}/beside", "resources": {"hugepageLimits": limits(0)}},
        }
        (directory / "config.json").write_text(json.dumps(config))
        done = subprocess.run([*self._runtime, "run", "--bundle", str(directory), "beside"], capture_output=True, text=True, input="")
        subprocess.run([*self._runtime, "delete", "--force", "beside"], capture_output=True)
        return done

    @property
    def _runtime(self) -> list[str]:
        return [*self.node, self.runtime.name, "--root", str(self.directory / "state")]

    def file(self, name: str) -> str:
        """A file of the container's hugetlb group, `max` or `rsvd.max`, as the node has it."""
        names = {"max": "limit_in_bytes", "rsvd.max": "rsvd.limit_in_bytes"} if self.version == 1 else {}
        return run(*self.node, "cat", f"{self._top}/{GROUP}/{self.name}/hugetlb.2MB.{names.get(name, name)}").strip()

    def call(self, *command: str | Path, writable: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command in a container of its own, to its end."""
        # A pipe: a runtime gives its standard input to the container's root, and /dev/null is the host's.
        done = subprocess.run(self.bundle(command, writable), capture_output=True, text=True, input="")
        self._delete()
        return done

    @contextmanager
    def server(self, cluster: Cluster) -> Iterator[bool]:
        """The server as process 1 of a container. Whether it answers: if not, its log has why, and it has ended."""
        command = self.bundle([cluster.install.bindir / "postgres", "-D", cluster.data], [cluster.root])
        with open(cluster.log_file, "w") as log:
            runtime = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.PIPE)
        try:
            until("the server to answer or to end", lambda: cluster.ready() or runtime.poll() is not None)
            yield runtime.poll() is None
            if runtime.poll() is None:
                os.kill(self.postmaster(), signal.SIGINT)
                until("the server to stop", lambda: runtime.poll() is not None)
        finally:
            if runtime.poll() is None:
                run(*self._runtime, "kill", self.name, "KILL")
            runtime.wait()
            self._delete()
            (cluster.data / "postmaster.pid").unlink(missing_ok=True)

    @contextmanager
    def by_podman(self, cluster: Cluster, *options: str) -> Iterator[int]:
        """The server as process 1 of a container of Podman's on this node, in no pod, which a service started; its process."""
        directory, group = self.directory / "podman", f"/sys/fs/cgroup/{SERVICE}"
        # A runroot has at most 50 characters.
        short = tempfile.mkdtemp(prefix="pg_hugepages-", dir="/run")
        for path in ("etc", "dev", "proc", "sys", "tmp", "run"):
            (directory / "rootfs" / path).mkdir(parents=True)
        (directory / "containers.conf").write_text(PODMAN.format(directory=directory, runtime=self.runtime.name))
        owner = cluster.data.stat()
        podman = [*self.node, "env", f"CONTAINERS_CONF={directory}/containers.conf", "podman", "--storage-driver", "vfs",
                  f"--root={directory}/root", *(f"--{option}={short}/{option}" for option in ("runroot", "tmpdir"))]
        volumes = [f"--volume={path}:{path}:ro" for path in of_image(directory / "rootfs")]
        mapped = [f"--{kind}map=0:{self._first_user}:65536" for kind in ("uid", "gid") if self._first_user]
        # A pipe as the container's standard input, too: a runtime gives that to its root, and /dev/null is the host's.
        command = [*podman, "run", "--interactive", "--name=db", f"--user={owner.st_uid}:{owner.st_gid}", *mapped, *options, *volumes,
                   f"--volume={cluster.root}:{cluster.root}", "--rootfs", str(directory / "rootfs"),
                   str(cluster.install.bindir / "postgres"), "-D", str(cluster.data)]
        if self._first_user:
            run("chown", "--recursive", f"{self._first_user + owner.st_uid}:{self._first_user + owner.st_gid}", cluster.root)
        run(*self.node, "mkdir", "-p", group)
        with open(cluster.log_file, "w") as log:
            started = subprocess.Popen([*self.node, "sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *command],
                                       stdout=log, stderr=log, stdin=subprocess.PIPE)
        try:
            until("the server to answer or to end", lambda: cluster.ready() or started.poll() is not None)
            assert started.poll() is None, cluster.log()
            yield int(run(*podman, "inspect", "--format", "{{.State.Pid}}", "db"))
            assert os.stat("/dev/null").st_uid == 0
        finally:
            removed = subprocess.run([*podman, "rm", "--force", "--time", "10", "db"], capture_output=True, text=True)
            started.wait()
            shutil.rmtree(short, ignore_errors=True)
            (cluster.data / "postmaster.pid").unlink(missing_ok=True)
            self._remove_groups(SERVICE, "libpod_parent")
            assert not removed.returncode, removed.stderr

    @contextmanager
    def by_containerd(self, cluster: Cluster) -> Iterator[int]:
        """The server as process 1 of a container of containerd's, in no pod, from its own specification with this limit; its process."""
        directory = self.directory / "containerd"
        for path in ("etc", "dev", "proc", "sys", "tmp", "run"):
            (directory / "rootfs" / path).mkdir(parents=True)
        (directory / "rootfs/tmp").chmod(0o1777)
        (directory / "config.toml").write_text(CONTAINERD_SETTINGS.format(directory=directory, state=CONTAINERD))
        ctr = [*self.node, "ctr", "--address", str(CONTAINERD / "containerd.sock")]
        owner = cluster.data.stat()
        with made_directory(CONTAINERD):
            # It is gone with the mount namespace, and no other containerd of this host sees it.
            run(*self.node, "mount", "-t", "tmpfs", "-o", "mode=711", "tmpfs", str(CONTAINERD))
            with open(directory / "log", "w") as log:
                daemon = subprocess.Popen([*self.node, "containerd", "--config", str(directory / "config.toml")], stdout=log, stderr=log)
            container = None
            try:
                until("containerd to answer", lambda: not subprocess.run([*ctr, "version"], capture_output=True).returncode)
                spec = json.loads(run(*ctr, "oci", "spec"))
                spec["root"] = {"path": str(directory / "rootfs")}
                spec["process"] |= {"args": [str(cluster.install.bindir / "postgres"), "-D", str(cluster.data)],
                                    "user": {"uid": owner.st_uid, "gid": owner.st_gid}}
                spec["mounts"] += [*map(bind, of_image(directory / "rootfs")), bind(cluster.root, options="rw")]
                # As `ctr run` has it without a specification: the namespace of containerd's, and the name.
                spec["linux"] |= {"cgroupsPath": "/default/db"}
                spec["linux"]["resources"] |= {"hugepageLimits": limits(self.limit)}
                if self._first_user:
                    mapped = [{"containerID": 0, "hostID": self._first_user, "size": 1 << 16}]
                    spec["linux"] |= {"uidMappings": mapped, "gidMappings": mapped}
                    spec["linux"]["namespaces"].append({"type": "user"})
                    users = f"{self._first_user + owner.st_uid}:{self._first_user + owner.st_gid}"
                    run("chown", "--recursive", users, cluster.root, directory / "rootfs")
                (directory / "spec.json").write_text(json.dumps(spec))
                with open(cluster.log_file, "w") as log:
                    container = subprocess.Popen([*ctr, "run", "--rm", "--runc-binary", self.runtime.name, "--config",
                                                  str(directory / "spec.json"), "db"], stdout=log, stderr=log, stdin=subprocess.PIPE)
                until("the server to answer or to end", lambda: cluster.ready() or container.poll() is not None)
                assert container.poll() is None, cluster.log()
                yield int(re.search(r"^db +(\d+)", run(*ctr, "task", "list"), re.M)[1])
            finally:
                if container:
                    subprocess.run([*ctr, "task", "kill", "--signal", "SIGINT", "db"], capture_output=True)
                    container.communicate()
                shims = [*self.node, "ls", str(CONTAINERD / "s")]
                until("the shim to end", lambda: not subprocess.run(shims, capture_output=True, text=True).stdout)
                daemon.terminate()
                daemon.wait()
                run(*self.node, "umount", str(CONTAINERD))
                self._remove_groups("default")
                (cluster.data / "postmaster.pid").unlink(missing_ok=True)

    def _remove_groups(self, *names: str) -> None:
        """Remove these groups of the top and all below them, when their processes have ended."""
        found = [word for name in names for word in ("-o", "-path", f"/sys/fs/cgroup/{name}*")]
        run(*self.node, "sh", "-c", 'find /sys/fs/cgroup -depth -type d "(" "$@" ")" -exec rmdir {} ";"', "sh", *found[1:])

    def postmaster(self) -> int:
        """The server's process, as the node has it."""
        return json.loads(run(*self._runtime, "state", self.name))["pid"]

    def _delete(self) -> None:
        subprocess.run([*self._runtime, "delete", "--force", self.name], capture_output=True)


def of_image(root: Path) -> list[Path]:
    """What the container in `root` has read-only of the host, as if it were of its image; links are made."""
    shown = [Path("/", entry.name) for entry in os.scandir("/")
             if entry.is_dir(follow_symlinks=False) and entry.name not in HIDDEN | {"etc", "var"}]
    for entry in os.scandir("/"):
        if entry.is_symlink():
            (root / entry.name).symlink_to(os.readlink(entry.path))
    names = ("passwd", "group", "ld.so.cache", "localtime", "ld.so.conf", "ld.so.conf.d", "alternatives", "nsswitch.conf")
    return shown + [Path("/etc", name) for name in names if Path("/etc", name).exists()]


SYS = [{"destination": path, "type": kind, "source": kind, "options": ["nosuid", "noexec", "nodev", "ro"]}
       for path, kind in (("/sys", "sysfs"), ("/sys/fs/cgroup", "cgroup"))]
"""What each container has of /sys."""


def limits(bytes_of_2_mb: int | None) -> list[dict]:
    """What a kubelet asks for: a limit of each page size of the node, 0 without one in the manifest."""
    return [{"pageSize": f"{size // GB}GB" if size >= GB else f"{size // MB}MB", "limit": bytes_of_2_mb if size == 2 * MB else 0}
            for size in (pool.page_size for pool in pools()) if bytes_of_2_mb is not None]


def bind(source: Path, destination: str = "", options: str = "ro") -> dict:
    """A mount of the host's file or directory, by default at its own place and not to be written to."""
    return {"destination": destination or str(source), "type": "bind", "source": str(source), "options": ["rbind", options]}


@contextmanager
def _controller_lent() -> Iterator[None]:
    """A hierarchy of version 1 may have the hugetlb controller in the block, and then goes: it stays while a group still ends."""
    with pool_lock():
        before = _hierarchy()
        try:
            yield
        finally:
            until("the hugetlb controller to be back where it was", lambda: _hierarchy() == before or _unmounted())


def _hierarchy() -> str:
    """The number of the hierarchy that has the hugetlb controller (cgroups(7)); 0 is version 2."""
    return re.search(r"^hugetlb\t(\d+)", Path("/proc/cgroups").read_text(), re.M)[1]


def _unmounted() -> bool:
    """Mount the hierarchy and unmount it, which removes it if it has no groups any more. Never true: see what it has come to."""
    run("unshare", "--mount", "--propagation", "private", "sh", "-ec", "mount -t cgroup -o hugetlb cgroup /mnt && umount /mnt")
    return False


UNIFIED = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"
LEGACY = """mount -t tmpfs tmpfs /sys/fs/cgroup
for controller in devices hugetlb; do
    mkdir /sys/fs/cgroup/$controller && mount -t cgroup -o $controller cgroup /sys/fs/cgroup/$controller
done"""


@contextmanager
def pod(runtime: str, limit: int | None, version: int, directory: Path, first_user: int = 0, kubelet_reserves: bool = False) -> Iterator[Pod]:
    """A pod whose only container may have `limit` bytes of 2 MB pages: 0 is what a kubelet writes without hugepages-2Mi,
    and None what Docker does.

    `first_user`: the node's user that is 0 in the pod, whose user namespace is its own unless this is 0. `kubelet_reserves`: the
    kubelet is one of 1.29 or later, which limits the pod's reservations, too, on version 2.
    """
    found = Runtime.find(runtime)
    # crun makes its own directory even if another one is named.
    with removed_if_new(Path("/run/crun")), controller_enabled() if version == 2 else _controller_lent():
        hierarchies = UNIFIED if version == 2 else LEGACY
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-ec",
                                   f"umount --recursive /sys/fs/cgroup\n{hierarchies}\nmount -t tmpfs tmpfs /var/log\necho there\nexec cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        made = Pod(found, holder.pid, limit, version, directory, first_user, kubelet_reserves)
        try:
            if holder.stdout.readline() != "there\n":
                raise Unsupported(f"this host has no cgroups of version {version} with hugetlb: {holder.stderr.read()}")
            made.make_as_the_kubelet()
            yield made
        finally:
            if holder.poll() is None:
                made.remove()
            holder.communicate()
