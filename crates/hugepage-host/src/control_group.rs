//! What the control group of a process tells (cgroups(7)): its container, and its systemd service.

use hugepage_facts::escape;
use hugepage_kernel::{Root, RootFiles};

/// Links to the logs of containers, of which the kubelet makes one a container: `POD_NAMESPACE_CONTAINER-ID.log`.
const CONTAINER_LOGS: &str = "/var/log/containers";
/// The directories of containerd's containers, each below that of its namespace.
const TASKS: &str = "/run/containerd/io.containerd.runtime.v2.task";

/// What a container runtime of root makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// For one application: no people log in there, and its users are whatever its image says.
    Application,
    /// For a whole system, with accounts of its own.
    System,
}

/// The container of `pid`, and the runtime's name of it; `None` for the host, and for what users run by themselves: only root can
/// put a process into the group of a container runtime of root.
pub(super) fn container(root: &Root, pid: i32) -> Option<(Container, String)> {
    of_path(root, pid, |path| {
        container_of(path).or_else(|| of_directory(root, path))
    })
}

/// The container of a pod in which `pid` is, by the names of its manifest: `shop/db-0/postgres` is the container `postgres` of the pod
/// `db-0` in the namespace `shop`. `None` for what is in no pod, and if root's files do not tell.
pub(super) fn container_of_pod(root: &Root, pid: i32) -> Option<String> {
    let end = format!("-{}.log", of_path(root, pid, id_in_pod)?);
    let links = RootFiles::new(root, 0).names(CONTAINER_LOGS).ok()?;
    let names = links.iter().find_map(|link| link.strip_suffix(&end))?;
    // None of the three names can have the sign between them.
    let (pod, others) = names.split_once('_')?;
    let (namespace, container) = others.split_once('_')?;
    Some(format!("{namespace}/{pod}/{container}"))
}

/// The service that started `pid`, as `oracle-ohasd.service` (systemd.unit(5)); `None` for what a user's session started, or if unknown.
pub(super) fn service(root: &Root, pid: i32) -> Option<String> {
    of_path(root, pid, service_of)
}

/// What `take` has of the first path in /proc/PID/cgroup of which it has something.
fn of_path<T>(root: &Root, pid: i32, take: impl Fn(&str) -> Option<T>) -> Option<T> {
    let paths = |text: &str| {
        text.lines()
            .filter_map(|line| line.splitn(3, ':').nth(2))
            .find_map(take)
    };
    root.read_short(&format!("/proc/{pid}/cgroup"), paths)
        .ok()?
}

/// Users may be let make groups of any name below their own, so the name counts only at the top, or in a slice of the system's. `..`
/// leads out of the control group namespace that this is in. No part of the name is one that the container itself may have made.
fn container_of(path: &str) -> Option<(Container, String)> {
    use Container::{Application, System};
    let mut parts = path.split('/').filter(|part| !["", ".."].contains(part));
    let first = parts.next()?;
    let begins_with =
        |name: &str, known: &[&str]| known.iter().any(|prefix| name.starts_with(prefix));
    // This program is in a pod itself, and the groups above both are not shown.
    let is_beside = begins_with(first, &["besteffort", "burstable", "kubepods-", "pod"]);
    if path.starts_with("/..") && is_beside {
        let name = format!("kubepods/{first}/{}", parts.next()?);
        return Some((Application, name));
    }
    let name = match first {
        "system.slice" | "machine.slice" => parts.next()?,
        first => first,
    };
    let of_runtime = ["cri-containerd-", "crio-", "docker-", "libpod-", "nerdctl-"];
    let (container, more) = match name {
        "docker" | "libpod_parent" => (Application, 1),
        "kubepods" | "kubepods.slice" => (Application, 2),
        // A pod of Podman's.
        _ if name.starts_with("machine-libpod_pod_") => (Application, 1),
        "lxc" => (System, 1),
        _ if name.ends_with(".scope") && begins_with(name, &of_runtime) => (Application, 0),
        _ if begins_with(name, &["lxc.payload.", "machine-", "systemd-nspawn@"]) => (System, 0),
        _ => return None,
    };
    let names: Vec<_> = [name].into_iter().chain(parts.take(more)).collect();
    Some((container, escape::name(names.join("/"))))
}

/// A container whose name could be anybody's, but not the directory, which is root's alone: containerd's of the container in
/// `/NAMESPACE/ID` (`ctr run`), or the group of the service in which Podman made one (`--cgroups=split`, podman-run(1)): a user's
/// service that may make groups owns its own.
fn of_directory(root: &Root, path: &str) -> Option<(Container, String)> {
    let (directory, name) = match path.split_once("/libpod-payload-") {
        // What is above this control group namespace is not below these directories.
        _ if path.starts_with("/..") => return None,
        Some((service, _)) => (format!("/sys/fs/cgroup{service}"), service),
        None if path.matches('/').count() == 2 => (format!("{TASKS}{path}"), path),
        None => return None,
    };
    let is_there = RootFiles::new(root, 0).has_directory(&directory).ok()?;
    is_there.then(|| (Container::Application, name.to_owned()))
}

/// The identifier of the container of a pod, a word in the name of its group. What is below may be the container's own.
fn id_in_pod(path: &str) -> Option<String> {
    container_of(path).filter(|(_, name)| name.starts_with("kubepods"))?;
    let is_id = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    path.split(['/', '-', '.']).find(is_id).map(str::to_owned)
}

fn service_of(path: &str) -> Option<String> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.@".contains(&byte);
    let is_name = |name: &&str| {
        let word = name.strip_suffix(".service").unwrap_or_default();
        !word.is_empty() && word.bytes().all(is_sign)
    };
    let mut parts = path.strip_prefix("/system.slice/")?.split('/');
    parts.find(is_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn groups_of_roots_runtimes() {
        for (path, found) in [
            (
                "/system.slice/docker-0123abcd.scope",
                Some((Container::Application, "docker-0123abcd.scope")),
            ),
            // Of a package that is no runtime.
            ("/system.slice/docker-registry.service", None),
            (
                "/kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope",
                Some((
                    Container::Application,
                    "kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope",
                )),
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-77.scope/own",
                Some((
                    Container::Application,
                    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice",
                )),
            ),
            (
                "/docker/0123abcd",
                Some((Container::Application, "docker/0123abcd")),
            ),
            (
                "/machine.slice/libpod-0123.scope/container",
                Some((Container::Application, "libpod-0123.scope")),
            ),
            (
                "/machine.slice/machine-libpod_pod_88.slice/libpod-0123.scope/container",
                Some((
                    Container::Application,
                    "machine-libpod_pod_88.slice/libpod-0123.scope",
                )),
            ),
            (
                "/../../kubepods/pod1/77",
                Some((Container::Application, "kubepods/pod1/77")),
            ),
            // As a sidecar in a pod sees others.
            (
                "/../../pod1/77/own",
                Some((Container::Application, "kubepods/pod1/77")),
            ),
            (
                "/../../../burstable/pod1/77",
                Some((Container::Application, "kubepods/burstable/pod1")),
            ),
            (
                "/../../kubepods-burstable-pod1.slice/cri-containerd-77.scope",
                Some((
                    Container::Application,
                    "kubepods/kubepods-burstable-pod1.slice/cri-containerd-77.scope",
                )),
            ),
            ("/../../pod1", None),
            ("/pod1/77", None),
            ("/../../user.slice/pod1/77", None),
            (
                "/lxc.payload.db/system.slice/postgresql.service",
                Some((Container::System, "lxc.payload.db")),
            ),
            (
                "/machine.slice/machine-db.scope/payload",
                Some((Container::System, "machine-db.scope")),
            ),
            // What a user runs by itself, under whatever name.
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0123.scope",
                None,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/docker/x",
                None,
            ),
            ("/system.slice/alice.service/docker-0123.scope", None),
            ("/system.slice/docker.service", None),
            ("/", None),
        ] {
            let of_path = container_of(path);
            assert_eq!(
                of_path.as_ref().map(|(kind, name)| (*kind, &**name)),
                found,
                "{path}"
            );
        }
    }

    #[test]
    fn containers_of_pods() {
        let [ours, other] = ["6e4b".repeat(16), "77aa".repeat(16)];
        let tree = tempfile::tempdir().unwrap();
        let logs = tree.path().join("var/log/containers");
        fs::create_dir_all(&logs).unwrap();
        for link in [
            format!("db-0_shop_istio-proxy-{other}.log"),
            format!("db-0_shop_postgres-{ours}.log"),
            format!("postgres-{}.log", "0".repeat(64)),
        ] {
            symlink("/var/log/pods/any", logs.join(link)).unwrap();
        }
        fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        let root = Root::at(tree.path());
        let named = |path: &str| {
            fs::write(tree.path().join("proc/7/cgroup"), format!("0::{path}\n")).unwrap();
            container_of_pod(&root, 7)
        };
        let pod = "pod5d5cbcb6-6d1c-4b7c-9e2e-0d3f7c5a8e11";
        let slice = format!("kubepods-burstable-{}.slice", pod.replace('-', "_"));
        for (path, wanted) in [
            (
                format!("/kubepods/burstable/{pod}/{ours}"),
                Some("shop/db-0/postgres"),
            ),
            (
                format!("/../../kubepods/{pod}/{ours}"),
                Some("shop/db-0/postgres"),
            ),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/{slice}/cri-containerd-{ours}.scope"
                ),
                Some("shop/db-0/postgres"),
            ),
            (
                format!("/../../{slice}/cri-containerd-{ours}.scope"),
                Some("shop/db-0/postgres"),
            ),
            (
                format!("/../../../{pod}/{ours}"),
                Some("shop/db-0/postgres"),
            ),
            // crun makes a group in that of CRI-O; and a container may make one of another's name.
            (
                format!("/kubepods.slice/kubepods-pod1.slice/crio-{ours}.scope/container/{other}"),
                Some("shop/db-0/postgres"),
            ),
            (format!("/kubepods/{pod}/{}", "5".repeat(64)), None),
            (format!("/kubepods/{pod}/{}", "0".repeat(64)), None),
            (format!("/kubepods/{pod}"), None),
            // No kubelet made these.
            (format!("/docker/{ours}"), None),
            (format!("/lxc.payload.x/kubepods/{pod}/{ours}"), None),
            (
                format!("/user.slice/user-1000.slice/kubepods/{pod}/{ours}"),
                None,
            ),
        ] {
            assert_eq!(named(&path).as_deref(), wanted, "{path}");
        }
        // What others than root may write says nothing.
        fs::set_permissions(&logs, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(named(&format!("/kubepods/{pod}/{ours}")), None);
        fs::remove_dir_all(&logs).unwrap();
        assert_eq!(named(&format!("/kubepods/{pod}/{ours}")), None);
    }

    #[test]
    fn containers_whose_directory_is_roots() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::at(tree.path());
        let unit = "/sys/fs/cgroup/system.slice";
        for (directory, mode) in [
            ("/proc/7".to_owned(), 0o755),
            (format!("{TASKS}/default/db"), 0o710),
            // As if others than root could make them.
            (format!("{TASKS}/default/open"), 0o777),
            (format!("{TASKS}/../cri"), 0o755),
            (format!("{unit}/db.service"), 0o755),
            (format!("{unit}/open.service"), 0o777),
        ] {
            let directory = tree.path().join(&directory[1..]);
            fs::create_dir_all(&directory).unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        let of_unit = "/system.slice/db.service";
        for (path, name) in [
            ("/default/db", Some("/default/db")),
            ("/default/open", None),
            ("/default/gone", None),
            // Seen from a control group namespace below.
            ("/../cri", None),
            ("/../libpod-payload-77aa", None),
            ("/default", None),
            ("/", None),
            // A group that the container itself may have made.
            ("/default/db/own", None),
            (
                "/system.slice/db.service/libpod-payload-77aa/container",
                Some(of_unit),
            ),
            (
                "/system.slice/db.service/libpod-payload-77aa/x/libpod-payload-88bb",
                Some(of_unit),
            ),
            ("/system.slice/open.service/libpod-payload-77aa", None),
            ("/system.slice/gone.service/libpod-payload-77aa", None),
            ("/system.slice/db.service/supervisor", None),
            (of_unit, None),
            ("/system.slice/docker-77aa.scope", Some("docker-77aa.scope")),
        ] {
            fs::write(tree.path().join("proc/7/cgroup"), format!("0::{path}\n")).unwrap();
            let found = container(&root, 7);
            assert_eq!(found.as_ref().map(|(_, name)| &**name), name, "{path}");
            assert!(found.is_none_or(|(kind, _)| kind == Container::Application));
        }
    }

    #[test]
    fn services_and_sessions() {
        for (path, service) in [
            (
                "/system.slice/oracle-ohasd.service",
                Some("oracle-ohasd.service"),
            ),
            (
                "/system.slice/system-dbora.slice/dbora@ORCL.service",
                Some("dbora@ORCL.service"),
            ),
            ("/user.slice/user-54321.slice/session-4.scope", None),
            (
                "/user.slice/user-54321.slice/user@54321.service/app.slice/x.service",
                None,
            ),
            ("/system.slice/a b.service", None),
            ("/system.slice/.service", None),
            ("/", None),
        ] {
            assert_eq!(service_of(path).as_deref(), service, "{path}");
        }
    }
}
