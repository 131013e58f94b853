//! The redaction rule of every file. A file without a rule is omitted.

use hugepage_host::{SERVICE_ACCOUNTS, is_usual_service_account};
use hugepage_kernel::memory::sysctl;
use hugepage_kernel::next_boot::mentions as mentions_pool;

use super::lines::lines;
use super::{redact_oracle, redact_postgresql, redact_process};

/// Takes the content of a file and returns the redacted content.
pub type RedactionRule = fn(&str) -> String;

/// The rule for the file at `path`; `None` if the file must be omitted.
pub fn rule(path: &str) -> Option<RedactionRule> {
    let path = path_in_container(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    // A server's configuration may name files in any way. The rules of exact places are for plain paths.
    if path.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) {
        return name.ends_with(".conf").then_some(redact_postgresql::settings as RedactionRule);
    }
    if let Some(rest) = path.strip_prefix("/proc/") {
        return match rest.split_once('/') {
            Some(("sys", parameter)) => parameter_rule(parameter),
            Some((pid, file)) if pid == "self" || pid.parse::<u32>().is_ok() => process_rule(file),
            _ => proc_rule(rest),
        };
    }
    if path == "/sys/kernel/kexec_loaded"
        || path.starts_with("/sys/kernel/mm/")
        || path.starts_with("/sys/devices/system/node/")
    {
        return Some(unchanged);
    }
    // Wherever cgroups are mounted: their numbers, not what runs in them.
    let of_memory = ["memory.limit_in_bytes", "memory.max", "memory.high", "memory.current", "memory.stat"];
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

/// The bytes that are kept of pg_control: up to the fields that a start depends on. The secret
/// `mock_authentication_nonce` begins at byte 256 in PostgreSQL 15 to 18, at 264 in 19.
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
        "cmdline" => Some(redact_process::command_line),
        "comm" => Some(unchanged),
        "maps" | "smaps" => Some(redact_process::shared_mappings),
        "mountinfo" | "mounts" => Some(mounts),
        file if file.starts_with("task/") && file.ends_with("/children") => Some(unchanged),
        _ => None,
    }
}

fn configuration_rule(path: &str, name: &str) -> Option<RedactionRule> {
    match name {
        "ocr.loc" | "olr.loc" | "oratab" | "os-release" | "PG_VERSION" => return Some(unchanged),
        "active_profile" | "post_loaded_profile" => return Some(unchanged),
        "postmaster.pid" => return Some(unchanged),
        "postmaster.opts" => return Some(redact_postgresql::options),
        "tuned-main.conf" | "tuned.conf" => return Some(tuned),
        "log.xml" => return Some(redact_oracle::alert_log),
        _ => {}
    }
    match path {
        "/etc/passwd" => return Some(accounts),
        "/etc/group" => return Some(groups),
        "/etc/nsswitch.conf" => return Some(sources_of_groups),
        SERVICE_ACCOUNTS | "/etc/hostname" => return Some(unchanged),
        _ => {}
    }
    if path.starts_with("/etc/security/limits") {
        return Some(limits);
    }
    if path.contains("/tmpfiles.d/") {
        return Some(pool_writers);
    }
    if path == "/etc/sysctl.conf" || path.contains("/sysctl.d/") {
        return Some(kernel_parameters);
    }
    if name.starts_with("alert_") && name.ends_with(".log") {
        return Some(redact_oracle::alert_log);
    }
    if name.ends_with(".ora") {
        return Some(redact_oracle::parameters);
    }
    if path.contains("/systemd/system/") || name.ends_with(".service") {
        return Some(unit);
    }
    if ["/etc/init.d/", "/etc/cron.d/", "/etc/crontab", "/etc/rc.local", "/etc/rc.d/"]
        .iter()
        .any(|place| path.starts_with(place))
    {
        return Some(pool_writers);
    }
    // Files of a PostgreSQL configuration can have any name; most end in .conf.
    name.ends_with(".conf").then_some(redact_postgresql::settings as RedactionRule)
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

/// The numbers of all groups, each with the usual service accounts among its members.
fn groups(text: &str) -> String {
    let shown = |line: &str| {
        let (gid, members) = line.splitn(3, ':').nth(2)?.split_once(':')?;
        let members: Vec<_> = members.split(',').filter(|name| is_usual_service_account(name)).collect();
        Some(format!("::{gid}:{}\n", members.join(",")))
    };
    text.lines().filter_map(shown).collect()
}

fn sources_of_groups(text: &str) -> String {
    lines(text, |line| line.trim_start().starts_with("group:"))
}

fn unchanged(text: &str) -> String {
    text.to_owned()
}

/// The words of the kernel command line about huge pages. Others may contain keys: where nothing is left, a word
/// says that there were some.
fn boot_parameters(text: &str) -> String {
    let is_kept = |word: &&str| {
        word.contains("huge")
            || ["mem=", "BOOT_IMAGE=", "systemd.wants="].iter().any(|start| word.starts_with(start))
            || ["--", "bootconfig"].contains(word)
    };
    let kept = text.split_ascii_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ");
    let was_empty = text.trim().is_empty();
    if kept.is_empty() && !was_empty { "words\n".to_owned() } else { kept + "\n" }
}

/// Keeps the lines of tmpfiles.d that mention a pool.
fn pool_writers(text: &str) -> String {
    lines(text, mentions_pool)
}

/// The file systems that huge pages, shared memory and control groups are on, and a root of layers, as containers have: the
/// others' lines name servers.
fn mounts(text: &str) -> String {
    const KEPT_FILE_SYSTEMS: [&str; 7] = ["cgroup", "cgroup2", "hugetlbfs", "tmpfs", "ramfs", "proc", "fuse.lxcfs"];
    lines(text, |line| {
        // mountinfo has the type after a dash, mounts in the third field.
        let (point, file_system) = match line.split_once(" - ") {
            Some((before, behind)) => (before.split(' ').nth(4), behind.split(' ').next()),
            None => (line.split(' ').nth(1), line.split(' ').nth(2)),
        };
        let is_layers = |name: &str| point == Some("/") && name.ends_with("overlay");
        file_system.is_some_and(|name| KEPT_FILE_SYSTEMS.contains(&name) || is_layers(name))
    })
}

/// The settings vm.* and kernel.shm*.
fn kernel_parameters(text: &str) -> String {
    lines(text, |line| {
        let is_kept = |name: &str| name.starts_with("vm.") || name.starts_with("kernel.shm") || mentions_pool(name);
        sysctl::parse(line).is_some_and(|(name, _)| is_kept(&name))
    })
}

fn tuned(text: &str) -> String {
    lines(text, |line| {
        let line = line.trim();
        let starts =
            ["[", "include", "reapply_sysctl", "vm.", "kernel.shm", "type", "script", "enabled", "replace", "drop"];
        mentions_pool(line) || line.contains("_regex") || starts.iter().any(|start| line.starts_with(start))
    })
}

fn limits(text: &str) -> String {
    lines(text, |line| line.contains("memlock") && !line.trim_start().starts_with('#'))
}

/// The data directory and the memlock limit of a unit, what sets a pool, and which program it starts on which directory.
fn unit(text: &str) -> String {
    const SHOWN: [&str; 3] = ["[", "LimitMEMLOCK=", "EnvironmentFile="];
    let is_path = |line: &str| {
        let variable = line.strip_prefix("Environment=").map(|rest| rest.trim_matches('"'));
        variable.is_some_and(|text| text.contains("=/") && !text.contains(char::is_whitespace))
    };
    let of_line = |line: &str| {
        let line = line.trim_end();
        if let Some((program, rest)) = line.strip_prefix("ExecStart=").and_then(|line| line.split_once(" -D")) {
            let first = |text: &str| text.split_ascii_whitespace().next().unwrap_or_default().to_owned();
            return Some(format!("ExecStart={} -D {}", first(program), first(rest)));
        }
        let is_shown = mentions_pool(line) || is_path(line) || SHOWN.iter().any(|start| line.starts_with(start));
        is_shown.then(|| line.to_owned())
    };
    text.lines().filter_map(of_line).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omit_names_of_people() {
        let text = "root:x:0:0:root:/root:/bin/sh\noracle:secret:54321:54321:Oracle:/home/oracle:/bin/sh\nalice:x:1000:1000:A:/:\n";
        assert_eq!(rule("/etc/passwd").unwrap()(text), "oracle::54321:54321:::\n");
        let text = "root:x:0:\ndba:x:54322:alice,oracle\nusers:x:100:alice\n";
        assert_eq!(rule("/etc/group").unwrap()(text), "::0:\n::54322:oracle\n::100:\n");
        assert_eq!(rule("/etc/nsswitch.conf").unwrap()("hosts: dns\ngroup: files\n"), "group: files\n");
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
                "[main]\ninclude=base\n[sysctl]\nvm.swappiness=1\n[script]\nscript=/x\n",
            ),
            (
                "/etc/security/limits.conf",
                "# memlock\noracle soft memlock unlimited\noracle soft nofile 9\n",
                "oracle soft memlock unlimited\n",
            ),
            (
                "/etc/systemd/system/postgresql.service",
                "[Service]\nEnvironment=PGPASSWORD=x\nEnvironment=PGDATA=/srv\nLimitMEMLOCK=infinity\nExecStart=-/opt/x.sh key=a\n",
                "[Service]\nEnvironment=PGDATA=/srv\nLimitMEMLOCK=infinity\n",
            ),
            (
                "/etc/systemd/system/db.service",
                "[Service]\nExecStart=/usr/bin/pg_ctl start -o key -D /srv -l /log\nEnvironmentFile=-/etc/default/db\n",
                "[Service]\nExecStart=/usr/bin/pg_ctl -D /srv\nEnvironmentFile=-/etc/default/db\n",
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
            (
                "/proc/self/mounts",
                "overlay / overlay rw,lowerdir=/a 0 0\noverlay /b overlay rw,lowerdir=/c 0 0\n",
                "overlay / overlay rw,lowerdir=/a 0 0\n",
            ),
            (
                "/proc/self/mountinfo",
                "1 2 0:1 / / rw - overlay overlay rw\n3 2 0:2 / /b rw - overlay overlay rw\n",
                "1 2 0:1 / / rw - overlay overlay rw\n",
            ),
        ] {
            assert_eq!(rule(path).unwrap()(text), left, "{path}");
        }
    }
}
