//! The redaction rule of every file. A file without a rule is omitted.

use hugepage_host::{SERVICE_ACCOUNTS, is_usual_service_account};
use hugepage_kernel::memory::sysctl;

use super::lines::lines;
use super::{oracle, postgresql, process};

/// Takes the content of a file and returns the redacted content.
pub type RedactionRule = fn(&str) -> String;

/// The rule for the file at `path`; `None` if the file must be omitted.
pub fn rule(path: &str) -> Option<RedactionRule> {
    let path = path_in_container(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    // A server's configuration may name files in any way. The rules of exact places are for plain paths.
    if path.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
        return name.ends_with(".conf").then_some(postgresql::settings as RedactionRule);
    }
    if let Some(rest) = path.strip_prefix("/proc/") {
        return match rest.split_once('/') {
            Some(("sys", parameter)) => parameter_rule(parameter),
            Some((pid, file)) if pid == "self" || pid.parse::<u32>().is_ok() => process_rule(file),
            _ => proc_rule(rest),
        };
    }
    if path.starts_with("/sys/kernel/mm/") || path.starts_with("/sys/devices/system/node/") {
        return Some(unchanged);
    }
    // Wherever cgroups are mounted: their numbers, not what runs in them.
    let of_memory = ["memory.max", "memory.high", "memory.current", "memory.stat"];
    if name.starts_with("hugetlb.") || name == "cgroup.controllers" || of_memory.contains(&name) {
        return Some(unchanged);
    }
    configuration_rule(path, name)
}

/// A path below /proc/PID/root as a process in that container sees it.
pub fn path_in_container(path: &str) -> &str {
    let inside = || path.strip_prefix("/proc/")?.split_once('/')?.1.strip_prefix("root");
    inside().filter(|inside| inside.starts_with('/')).unwrap_or(path)
}

/// Whether the kernel generates the file when it is read.
pub fn is_of_kernel(path: &str) -> bool {
    let path = path_in_container(path);
    path == "/proc" || path.starts_with("/proc/") || path.starts_with("/sys/")
}

/// Of pg_control: up to the fields that a start depends on. The secret `mock_authentication_nonce` begins at byte 256 in
/// PostgreSQL 15 to 18, at 264 in 19.
const CONTROL_SHOWN: usize = 244;

/// The bytes to keep of a binary file: the auxiliary vector with the page size, and the beginning of pg_control.
pub fn bytes_shown(path: &str) -> Option<usize> {
    let is_auxv = |path: &str| {
        let pid = path.strip_prefix("/proc/").and_then(|rest| rest.strip_suffix("/auxv"));
        pid.is_some_and(|pid| pid == "self" || pid.parse::<u32>().is_ok())
    };
    match path {
        path if is_auxv(path) => Some(4096),
        path if path.ends_with("/global/pg_control") => Some(CONTROL_SHOWN),
        _ => None,
    }
}

fn proc_rule(file: &str) -> Option<RedactionRule> {
    match file {
        "meminfo" | "vmstat" | "buddyinfo" | "zoneinfo" | "uptime" | "pressure/memory" | "sysvipc/shm" => {
            Some(unchanged)
        }
        "cmdline" => Some(boot_parameters),
        "mounts" => Some(mounts),
        _ => None,
    }
}

fn parameter_rule(file: &str) -> Option<RedactionRule> {
    let known = [
        "kernel/hostname",
        "kernel/osrelease",
        "kernel/random/boot_id",
        "kernel/sem",
        "kernel/shmall",
        "kernel/shmmax",
        "kernel/shmmni",
    ];
    (file.starts_with("vm/") || known.contains(&file)).then_some(unchanged as RedactionRule)
}

fn process_rule(file: &str) -> Option<RedactionRule> {
    match file {
        "cgroup" | "limits" | "stat" | "statm" | "status" | "uid_map" => Some(unchanged),
        "cmdline" => Some(process::command_line),
        "comm" => Some(unchanged),
        "maps" | "smaps" => Some(process::shared_mappings),
        "mountinfo" | "mounts" => Some(mounts),
        file if file.starts_with("task/") && file.ends_with("/children") => Some(unchanged),
        _ => None,
    }
}

fn configuration_rule(path: &str, name: &str) -> Option<RedactionRule> {
    match name {
        "ocr.loc" | "olr.loc" | "oratab" | "os-release" | "active_profile" | "PG_VERSION" => return Some(unchanged),
        "postmaster.pid" => return Some(unchanged),
        "postmaster.opts" => return Some(postgresql::options),
        "tuned-main.conf" | "tuned.conf" => return Some(tuned),
        "log.xml" => return Some(oracle::alert_log),
        _ => {}
    }
    match path {
        "/etc/passwd" => return Some(accounts),
        SERVICE_ACCOUNTS | "/etc/hostname" => return Some(unchanged),
        _ => {}
    }
    if path.starts_with("/etc/security/limits") {
        return Some(limits);
    }
    if path.contains("/tmpfiles.d/") {
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
    if path.starts_with("/etc/systemd/system/") {
        return Some(pool_writers);
    }
    // Files of a PostgreSQL configuration can have any name; most end in .conf.
    name.ends_with(".conf").then_some(postgresql::settings as RedactionRule)
}

/// The names and numbers of accounts that servers usually have, not those of people.
fn accounts(text: &str) -> String {
    let shown = |line: &str| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        is_usual_service_account(name).then(|| format!("{name}::{uid}:{gid}:::\n"))
    };
    text.lines().filter_map(shown).collect()
}

fn unchanged(text: &str) -> String {
    text.to_owned()
}

/// The words of the kernel command line about huge pages. Others may contain keys.
fn boot_parameters(text: &str) -> String {
    let is_kept = |word: &&str| word.contains("huge") || word.starts_with("mem=");
    text.split_ascii_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ") + "\n"
}

/// Of what runs at boot what sets a pool.
fn pool_writers(text: &str) -> String {
    lines(text, sets_pool)
}

fn sets_pool(line: &str) -> bool {
    line.contains("nr_hugepages") || line.starts_with("Environment=PAGES=") || line.starts_with("Environment=POOL=")
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
    const KEPT_FILE_SYSTEMS: [&str; 7] = ["cgroup", "cgroup2", "hugetlbfs", "tmpfs", "ramfs", "proc", "fuse.lxcfs"];
    lines(text, |line| {
        // mountinfo has the type after a dash, mounts in the third field.
        let file_system = match line.split_once(" - ") {
            Some((_, behind)) => behind.split(' ').next(),
            None => line.split(' ').nth(2),
        };
        file_system.is_some_and(|name| KEPT_FILE_SYSTEMS.contains(&name))
    })
}

/// The settings vm.* and kernel.shm*.
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

/// The data directory and the memlock limit of a unit, and what sets a pool.
fn unit(text: &str) -> String {
    lines(text, |line| {
        let line = line.trim();
        sets_pool(line) || ["[", "Environment=PGDATA=", "LimitMEMLOCK="].iter().any(|start| line.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omit_names_of_people() {
        let text = "root:x:0:0:root:/root:/bin/sh\noracle:secret:54321:54321:Oracle:/home/oracle:/bin/sh\nalice:x:1000:1000:A:/:\n";
        assert_eq!(rule("/etc/passwd").unwrap()(text), "oracle::54321:54321:::\n");
    }

    #[test]
    fn omit_files_without_a_rule() {
        for path in [
            "/etc/shadow",
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
    fn redact_containers_like_the_host() {
        assert!(rule("/proc/7/root/etc/oratab").is_some() && rule("/etc/oracle/ocr.loc").is_some());
        assert!(rule("/proc/7/root/etc/shadow").is_none() && rule("/proc/7/rooted").is_none());
        assert_eq!(bytes_shown("/proc/7/root/data/global/pg_control"), Some(CONTROL_SHOWN));
    }

    #[test]
    fn redact_files_of_the_host() {
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
