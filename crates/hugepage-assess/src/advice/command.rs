//! Complete commands for the administrator.

use std::borrow::Cow;

use hugepage_kernel::memory::pool;
use hugepage_kernel::{PageSize, Pages};

/// Sets the pool of `size` to `pages` until the next boot.
pub fn set_pool(size: PageSize, is_default: bool, pages: Pages) -> String {
    if is_default {
        format!("sysctl -w vm.nr_hugepages={pages}")
    } else {
        format!("echo {pages} > /sys/kernel/mm/hugepages/{}/nr_hugepages", size.sysfs_name())
    }
}

/// Sets the pool of `size` on one NUMA node to `pages` until the next boot.
pub fn set_node_pool(node: u32, size: PageSize, pages: Pages) -> String {
    format!("echo {pages} > {}", pool::node_file(node, size))
}

/// Allows `pages` surplus pages of `size` until the next boot.
pub fn set_overcommit(size: PageSize, is_default: bool, pages: Pages) -> String {
    set_pool(size, is_default, pages).replace("nr_hugepages", "nr_overcommit_hugepages")
}

/// Sets a limit of a systemd service, such as `LimitMEMLOCK`, from its next start on (systemd.exec(5)).
pub fn limit_of_service(service: &str, limit: &str, value: &str) -> String {
    let directory = format!("/etc/systemd/system/{service}.d");
    let file = limit.to_ascii_lowercase();
    format!(
        "mkdir -p {directory} && printf '[Service]\\nLimit{limit}={value}\\n' > {directory}/{file}.conf && systemctl \
         daemon-reload"
    )
}

/// Sorts after the files of distributions and packages, so that its value is the one in effect.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-postgresql-hugepages.conf";

/// Sets the pool of `size` at each boot: in a file of sysctl.d for the default size, on the kernel's command line for others.
/// `file`: what sets it now. `None` for a size of the command line that something sets already: of two counts the first
/// counts.
pub fn set_pool_at_boot(size: PageSize, is_default: bool, pages: Pages, file: Option<&str>) -> Option<String> {
    // A later file of /etc takes precedence, so it has to be changed itself.
    let is_later =
        |file: &&str| file.starts_with("/etc/sysctl") && file.rsplit('/').next() > SYSCTL_FILE.rsplit('/').next();
    Some(match file.filter(is_later) {
        _ if !is_default => return file.is_none().then(|| reserve_at_boot(size, pages)),
        Some(file) => {
            let file = quoted(file);
            format!("sed -i -E 's|^[- ]*vm[./]nr_hugepages *=.*|vm.nr_hugepages = {pages}|' {file}")
        }
        None => format!("echo 'vm.nr_hugepages = {pages}' > {SYSCTL_FILE}"),
    })
}

/// Adds a reservation to the kernel's command line, with grubby (Red Hat) or update-grub (Debian).
pub fn reserve_at_boot(size: PageSize, pages: Pages) -> String {
    let size = size.kernel_parameter();
    format!(
        "grubby --update-kernel=ALL --args=\"hugepagesz={size} hugepages={pages}\" || (echo \
         'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX hugepagesz={size} hugepages={pages}\"' >> /etc/default/grub && update-grub)"
    )
}

/// A word for a shell: as it is where no character has a meaning to it, in quotes otherwise. Line breaks and other control
/// characters are in `$'...'` (POSIX 2024, bash, ksh), so that a command stays one line that a terminal shows as it is.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    if !word.contains(char::is_control) {
        return format!("'{}'", word.replace('\'', "'\\''")).into();
    }
    let escaped = |c: char| match c {
        '\'' | '\\' => format!("\\{c}"),
        // All bytes of the character in octal.
        c if c.is_control() => c.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect(),
        c => c.to_string(),
    };
    format!("$'{}'", word.chars().map(escaped).collect::<String>()).into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_word_as_one() {
        assert_eq!(quoted("/sys/fs/cgroup/a-b.slice/hugetlb.2MB.max"), "/sys/fs/cgroup/a-b.slice/hugetlb.2MB.max");
        for word in
            ["a b", "$(touch /tmp/x)", "`id`", "it's", "", "a;b", "*", "~", "\\", "a\nb", "\x1b[31m'\\", "\u{9b}"]
        {
            let quoted = quoted(word);
            assert!(!quoted.contains(char::is_control), "{quoted}");
            let said = Command::new("bash").args(["-c", &format!("printf %s {quoted}")]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word, "{quoted}");
        }
    }
}
