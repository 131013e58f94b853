//! What the control group of a process tells (cgroups(7)): its container, its systemd service, and the memory that it may have.

use hugepage_assess::model::Segment;
use hugepage_kernel::cgroups::cgroup::{CgroupLimits, MIN_UNLIMITED, below, levels};
use hugepage_kernel::host::mounts;
use hugepage_kernel::{Bytes, Root};

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
    of_path(root, pid, container_of)
}

/// The service that started `pid`, as `oracle-ohasd.service` (systemd.unit(5)); `None` for what a user's session started, or if unknown.
pub(super) fn service(root: &Root, pid: i32) -> Option<String> {
    of_path(root, pid, service_of)
}

/// What `take` has of the first path in /proc/PID/cgroup of which it has something.
fn of_path<T>(root: &Root, pid: i32, take: impl Fn(&str) -> Option<T>) -> Option<T> {
    let paths = |text: &str| text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(take);
    root.read_short(&format!("/proc/{pid}/cgroup"), paths).ok()?
}

/// Users may be let make groups of any name below their own, so the name counts only at the top, or in a slice of the system's. `..`
/// leads out of the control group namespace that this is in. No part of the name is one that the container itself may have made.
fn container_of(path: &str) -> Option<(Container, String)> {
    let mut parts = path.split('/').filter(|part| !part.is_empty()).skip_while(|part| *part == "..");
    let first = parts.next()?;
    let name = match first {
        "system.slice" | "machine.slice" => parts.next()?,
        first => first,
    };
    const APPLICATION: [&str; 5] = ["cri-containerd-", "crio-", "docker-", "libpod-", "nerdctl-"];
    const SYSTEM: [&str; 3] = ["lxc.payload.", "machine-", "systemd-nspawn@"];
    let begins_with = |known: &[&str]| known.iter().any(|prefix| name.starts_with(prefix));
    let is_application = || name.ends_with(".scope") && begins_with(&APPLICATION);
    let (container, more) = match name {
        "docker" | "libpod_parent" => (Container::Application, 1),
        "kubepods" | "kubepods.slice" => (Container::Application, 2),
        "lxc" => (Container::System, 1),
        _ if is_application() => (Container::Application, 0),
        _ if begins_with(&SYSTEM) => (Container::System, 0),
        _ => return None,
    };
    Some((container, [name].into_iter().chain(parts.take(more)).collect::<Vec<_>>().join("/")))
}

fn service_of(path: &str) -> Option<String> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    if parts.next()? != "system.slice" {
        return None;
    }
    let is_name = |name: &&str| {
        let named = name.strip_suffix(".service").is_some_and(|name| !name.is_empty());
        named && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_.@".contains(&byte))
    };
    parts.find(is_name).map(str::to_owned)
}

/// The lowest limit of the groups that `pid` is in; `None` if there is none, or none can be seen. `mounted`: the lines of [`mounts::PATH`].
pub(super) fn memory_limit(root: &Root, pid: i32, mounted: &str) -> Option<Bytes> {
    let memberships = root.read_short(&format!("/proc/{pid}/cgroup"), str::to_owned).ok()?;
    let limits = memberships.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_v1 = controllers.split(',').any(|name| name == "memory");
        if !is_v1 && !controllers.is_empty() {
            return None;
        }
        let (kind, file) = if is_v1 { ("cgroup", "memory.limit_in_bytes") } else { ("cgroup2", "memory.max") };
        let mount = mounts::parse(mounted).find(|mount| mount.kind == kind && (!is_v1 || mount.has("memory")))?;
        let below = below(&mount.root, path)?;
        let limit = |level: &str| {
            let level = if level.is_empty() { String::new() } else { format!("/{level}") };
            let text = root.read_short(&format!("{}{level}/{file}", mount.point), str::to_owned).ok()?;
            text.trim().parse().ok().filter(|limit| *limit < MIN_UNLIMITED).map(Bytes)
        };
        levels(&below).filter_map(limit).min()
    });
    limits.min()
}

/// Why the need of a server is unknown whose `segment` has no huge pages: a mapping takes no page until a process touches it, so its size
/// proves nothing if its control group never lets it have that much. `memory`, `limits`: what that lets it have of memory, and of
/// huge pages.
pub(super) fn beyond_limit(memory: Option<Bytes>, limits: Option<&CgroupLimits>, segment: &Segment) -> Option<String> {
    let of_pages = limits.iter().flat_map(|limits| limits.fault.iter().chain(&limits.reservation));
    // Without a limit of their own, huge pages may be more than the limit on memory: nobody knows by how much.
    let most = memory?.max(of_pages.map(|limit| limit.limit).min().unwrap_or_default());
    (segment.to_reserve > most).then(|| {
        let size = segment.size;
        format!("it maps {size} of shared memory, and its control group lets it have {most}, so its need is unknown")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn groups_of_roots_runtimes() {
        for (path, found) in [
            ("/system.slice/docker-0123abcd.scope", Some((Container::Application, "docker-0123abcd.scope"))),
            // Of a package that is no runtime.
            ("/system.slice/docker-registry.service", None),
            (
                "/kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope",
                Some((Container::Application, "kubepods.slice/kubepods-pod1.slice/cri-containerd-77.scope")),
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-77.scope/own",
                Some((Container::Application, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice")),
            ),
            ("/docker/0123abcd", Some((Container::Application, "docker/0123abcd"))),
            ("/machine.slice/libpod-0123.scope/container", Some((Container::Application, "libpod-0123.scope"))),
            ("/../../kubepods/pod1/77", Some((Container::Application, "kubepods/pod1/77"))),
            ("/lxc.payload.db/system.slice/postgresql.service", Some((Container::System, "lxc.payload.db"))),
            ("/machine.slice/machine-db.scope/payload", Some((Container::System, "machine-db.scope"))),
            // What a user runs by itself, under whatever name.
            ("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0123.scope", None),
            ("/user.slice/user-1000.slice/user@1000.service/docker/x", None),
            ("/system.slice/alice.service/docker-0123.scope", None),
            ("/system.slice/docker.service", None),
            ("/", None),
        ] {
            let of_path = container_of(path);
            assert_eq!(of_path.as_ref().map(|(kind, name)| (*kind, &**name)), found, "{path}");
        }
    }

    #[test]
    fn services_and_sessions() {
        for (path, service) in [
            ("/system.slice/oracle-ohasd.service", Some("oracle-ohasd.service")),
            ("/system.slice/system-dbora.slice/dbora@ORCL.service", Some("dbora@ORCL.service")),
            ("/user.slice/user-54321.slice/session-4.scope", None),
            ("/user.slice/user-54321.slice/user@54321.service/app.slice/x.service", None),
            ("/system.slice/a b.service", None),
            ("/system.slice/.service", None),
            ("/", None),
        ] {
            assert_eq!(service_of(path).as_deref(), service, "{path}");
        }
    }

    #[test]
    fn the_lowest_of_all_levels() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::at(tree.path());
        let limit = || memory_limit(&root, 7, &root.read(mounts::PATH).unwrap());
        write("proc/7/cgroup", "0::/a/b\n");
        write("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        assert_eq!(limit(), None);
        for (level, text, expected) in
            [("a/b", "max", None), ("a", "4096", Some(4096)), ("a/b", "8192", Some(4096)), ("a", "max", Some(8192))]
        {
            write(&format!("sys/fs/cgroup/{level}/memory.max"), text);
            assert_eq!(limit(), expected.map(Bytes), "{level} {text}");
        }
        write("proc/7/cgroup", "5:memory:/c\n1:name=systemd:/a\n");
        write("proc/self/mountinfo", "1 2 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(limit(), None);
        write("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "12288");
        assert_eq!(limit(), Some(Bytes(12288)));
    }
}
