//! Containers that a container runtime of root made, by the control group: only root can put a process into it.

use hugepage_kernel::Root;

/// What a container runtime of root makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// For one application: no people log in there, and its users are whatever its image says.
    Application,
    /// For a whole system, with accounts of its own.
    System,
}

/// The container of `pid`, and the runtime's name of it; `None` for the host, and for what users run by themselves.
pub(super) fn container(root: &Root, pid: i32) -> Option<(Container, String)> {
    let paths = |text: &str| text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(container_of);
    root.read_short(&format!("/proc/{pid}/cgroup"), paths).ok()?
}

/// From a path in /proc/PID/cgroup (cgroups(7)). Users may be let make groups of any name below their own, so the name
/// counts only at the top, or in a slice of the system's. `..` leads out of the control group namespace that this is in. No part
/// of the name is one that the container itself may have made.
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

#[cfg(test)]
mod tests {
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
}
