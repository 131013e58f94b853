//! The systemd service of a process, from its control group (systemd.unit(5), cgroups(7)).

use hugepage_kernel::Root;

/// The service that started `pid`, as `oracle-ohasd.service`; `None` for what a user's session started, or if unknown.
pub(crate) fn service_of(root: &Root, pid: i32) -> Option<String> {
    let paths = |text: &str| text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).find_map(in_path);
    root.read_short(&format!("/proc/{pid}/cgroup"), paths).ok()?
}

fn in_path(path: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(in_path(path).as_deref(), service, "{path}");
        }
    }
}
