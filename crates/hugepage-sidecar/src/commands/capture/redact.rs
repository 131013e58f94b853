//! What of a file may leave the host, file by file. A file that no rule knows is left out, whoever reads it.

use super::{oracle, postgresql, process};
use hugepage_core::read::sysctl;

/// Takes the content of a file and returns what may be shown of it.
pub type Rule = fn(&str) -> String;

/// The rule for the file at `path`; `None` if nothing of it may leave.
pub fn rule(path: &str) -> Option<Rule> {
    let path = as_seen_inside(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(rest) = path.strip_prefix("/proc/") {
        return match rest.split_once('/') {
            Some(("sys", parameter)) => of_parameter(parameter),
            Some((pid, file)) if pid == "self" || pid.parse::<u32>().is_ok() => of_process(file),
            _ => of_proc(rest),
        };
    }
    if path.starts_with("/sys/kernel/mm/") || path.starts_with("/sys/devices/system/node/") {
        return Some(as_it_is);
    }
    // Wherever cgroups are mounted: their numbers, not what runs in them.
    let of_memory = ["memory.max", "memory.high", "memory.current", "memory.stat"];
    if name.starts_with("hugetlb.") || name == "cgroup.controllers" || of_memory.contains(&name) {
        return Some(as_it_is);
    }
    of_configuration(path, name)
}

/// A path below /proc/PID/root, which is what a process in a container sees, as that process names it.
pub fn as_seen_inside(path: &str) -> &str {
    let inside = || path.strip_prefix("/proc/")?.split_once('/')?.1.strip_prefix("root");
    inside().filter(|inside| inside.starts_with('/')).unwrap_or(path)
}

/// Whether the kernel makes the file up when it is read.
pub fn is_of_kernel(path: &str) -> bool {
    let path = as_seen_inside(path);
    path == "/proc" || path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Files that are no text, and how much of them may leave: the auxiliary vector says nothing of the host but its page
/// size and processor, and a pg_control begins with the cluster's identifier.
pub fn bytes_shown(path: &str) -> Option<usize> {
    match path {
        path if path.starts_with("/proc/") && path.ends_with("/auxv") => Some(4096),
        path if path.ends_with("/global/pg_control") => Some(8),
        _ => None,
    }
}

fn of_proc(file: &str) -> Option<Rule> {
    match file {
        "meminfo" | "vmstat" | "buddyinfo" | "zoneinfo" | "uptime" | "pressure/memory" | "sysvipc/shm" => {
            Some(as_it_is)
        }
        "cmdline" => Some(boot_parameters),
        "mounts" => Some(mounts),
        _ => None,
    }
}

fn of_parameter(file: &str) -> Option<Rule> {
    let known = [
        "kernel/hostname",
        "kernel/osrelease",
        "kernel/random/boot_id",
        "kernel/sem",
        "kernel/shmall",
        "kernel/shmmax",
        "kernel/shmmni",
    ];
    (file.starts_with("vm/") || known.contains(&file)).then_some(as_it_is as Rule)
}

fn of_process(file: &str) -> Option<Rule> {
    match file {
        "cgroup" | "limits" | "stat" | "statm" | "status" => Some(as_it_is),
        "cmdline" => Some(process::command_line),
        "comm" => Some(as_it_is),
        "maps" | "smaps" => Some(process::shared_mappings),
        "mountinfo" | "mounts" => Some(mounts),
        file if file.starts_with("task/") && file.ends_with("/children") => Some(as_it_is),
        _ => None,
    }
}

fn of_configuration(path: &str, name: &str) -> Option<Rule> {
    match name {
        "oratab" | "os-release" | "active_profile" | "PG_VERSION" => return Some(as_it_is),
        "postmaster.pid" => return Some(as_it_is),
        "postmaster.opts" => return Some(postgresql::options),
        "tuned-main.conf" | "tuned.conf" => return Some(tuned),
        "log.xml" => return Some(oracle::alert_log),
        _ => {}
    }
    if path.starts_with("/etc/security/limits") {
        return Some(limits);
    }
    if path.contains("/tmpfiles.d/") || path.starts_with("/etc/systemd/system/") {
        return Some(pool_writers);
    }
    if path.starts_with("/boot/") {
        return Some(boot_entries);
    }
    if path == "/etc/sysctl.conf" || path.contains("/sysctl.d/") {
        return Some(kernel_parameters);
    }
    if name.starts_with("alert_") && name.ends_with(".log") {
        return Some(oracle::alert_log);
    }
    if name.ends_with(".ora") {
        return Some(oracle::parameters);
    }
    if name.ends_with(".service") || path.contains(".service.d/") {
        return Some(unit);
    }
    // The files of a PostgreSQL configuration can have any name; most end so.
    name.ends_with(".conf").then_some(postgresql::settings as Rule)
}

fn as_it_is(text: &str) -> String {
    text.to_owned()
}

/// The lines for which `wanted` holds.
pub fn lines(text: &str, wanted: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| wanted(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Of the kernel's command line what concerns huge pages: some hosts have keys on it.
fn boot_parameters(text: &str) -> String {
    let wanted = |word: &&str| word.contains("huge") || word.starts_with("mem=");
    text.split_ascii_whitespace().filter(wanted).collect::<Vec<_>>().join(" ") + "\n"
}

/// Of what runs at boot what sets a pool.
fn pool_writers(text: &str) -> String {
    lines(text, |line| {
        line.contains("nr_hugepages") || line.starts_with("Environment=PAGES=") || line.starts_with("Environment=POOL=")
    })
}

/// Of the boot loader's entries the command lines, as [`boot_parameters`] has them.
fn boot_entries(text: &str) -> String {
    let of_line = |line: &str| {
        let line = line.trim_start();
        let key = ["linux", "options", "kernelopts="].into_iter().find(|key| line.starts_with(key))?;
        let rest = line.strip_prefix(key).unwrap_or_default();
        let kept = rest.split_ascii_whitespace().filter(|word| word.contains("huge") || *word == "$kernelopts");
        Some(format!("{key} {}\n", kept.collect::<Vec<_>>().join(" ")).replace("kernelopts= ", "kernelopts="))
    };
    text.lines().filter_map(of_line).collect()
}

/// The file systems that huge pages, shared memory and control groups are on: the others' lines name servers.
fn mounts(text: &str) -> String {
    const WANTED: [&str; 7] = ["cgroup", "cgroup2", "hugetlbfs", "tmpfs", "ramfs", "proc", "fuse.lxcfs"];
    lines(text, |line| {
        // mountinfo has the type behind a dash, mounts as its third word.
        let file_system = match line.split_once(" - ") {
            Some((_, behind)) => behind.split(' ').next(),
            None => line.split(' ').nth(2),
        };
        file_system.is_some_and(|name| WANTED.contains(&name))
    })
}

/// vm.* and the limits of System V shared memory.
fn kernel_parameters(text: &str) -> String {
    lines(text, |line| {
        sysctl::parse(line).is_some_and(|(name, _)| name.starts_with("vm.") || name.starts_with("kernel.shm"))
    })
}

fn tuned(text: &str) -> String {
    lines(text, |line| {
        let line = line.trim();
        ["[", "include", "reapply_sysctl", "vm.", "kernel.shm"].iter().any(|start| line.starts_with(start))
    })
}

fn limits(text: &str) -> String {
    lines(text, |line| line.contains("memlock") && !line.trim_start().starts_with('#'))
}

/// Which data directory a unit is for, and what it may lock.
fn unit(text: &str) -> String {
    lines(text, |line| {
        let line = line.trim();
        ["[", "Environment=PGDATA=", "LimitMEMLOCK="].iter().any(|start| line.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_rule_knows_stays() {
        for path in [
            "/etc/shadow",
            "/etc/passwd",
            "/etc/machine-id",
            "/proc/1/environ",
            "/proc/1/mem",
            "/proc/self/environ",
            "/proc/keys",
            "/proc/sys/kernel/core_pattern",
            "/sys/firmware/dmi/tables/DMI",
            "/var/lib/postgresql/15/main/server.key",
            "/var/lib/postgresql/.pgpass",
            "/u01/dbs/orapwORCL",
        ] {
            assert!(rule(path).is_none(), "{path}");
        }
    }

    #[test]
    fn what_a_container_sees_is_treated_as_what_the_host_sees() {
        assert!(rule("/proc/7/root/etc/oratab").is_some());
        assert!(rule("/proc/7/root/etc/shadow").is_none() && rule("/proc/7/rooted").is_none());
        assert_eq!(bytes_shown("/proc/7/root/data/global/pg_control"), Some(8));
    }

    #[test]
    fn what_is_left_of_the_hosts_files() {
        for (path, text, left) in [
            (
                "/proc/cmdline",
                "root=/dev/sda hugepagesz=1G hugepages=4 rd.luks.key=abc mem=4G\n",
                "hugepagesz=1G hugepages=4 mem=4G\n",
            ),
            ("/proc/sys/vm/nr_hugepages", "7\n", "7\n"),
            (
                "/etc/sysctl.d/a.conf",
                "# pw\nvm.nr_hugepages = 3\n-vm/swappiness=1\nkernel.core_pattern=|/x\n",
                "vm.nr_hugepages = 3\n-vm/swappiness=1\n",
            ),
            (
                "/etc/tuned/mine/tuned.conf",
                "[main]\ninclude=base\n[sysctl]\nvm.swappiness=1\nnet.x=1\n[script]\nscript=/x\n",
                "[main]\ninclude=base\n[sysctl]\nvm.swappiness=1\n[script]\n",
            ),
            (
                "/etc/security/limits.conf",
                "# memlock\noracle soft memlock unlimited\noracle soft nofile 9\n",
                "oracle soft memlock unlimited\n",
            ),
            (
                "/etc/systemd/system/postgresql.service",
                "[Service]\nEnvironment=PGPASSWORD=x\nEnvironment=PGDATA=/srv\nLimitMEMLOCK=infinity\n",
                "[Service]\nEnvironment=PGDATA=/srv\nLimitMEMLOCK=infinity\n",
            ),
            (
                "/proc/self/mountinfo",
                "1 2 0:1 / /mnt rw - cifs //server/share rw,username=x\n3 2 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
                "3 2 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            (
                "/proc/mounts",
                "//server/x /mnt cifs rw 0 0\nnone /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n",
                "none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n",
            ),
        ] {
            assert_eq!(rule(path).unwrap()(text), left, "{path}");
        }
    }
}
