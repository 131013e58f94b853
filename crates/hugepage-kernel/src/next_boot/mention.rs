//! Whether a text that runs at boot may set a pool.

/// What commands and files that set pools have in common, in lower case. Mounts of hugetlbfs and transparent huge pages have none
/// of these.
const WORDS: [&str; 7] = [
    "nr_huge",
    "hugepages/hugepages-",
    "/mm/hugepages",
    "hugeadm",
    "dpdk-hugepages",
    "virsh allocpages",
    "hugepage-sidecar apply",
];
/// What contains one of those, and sets no pool.
const OTHERS: [&str; 3] = ["/mm/transparent_hugepage", "nr_overcommit_hugepages", "dev-hugepages.mount"];
/// The keys of a unit that ask whether a file is there.
const CONDITIONS: [&str; 2] = ["conditionpath", "assertpath"];

/// The first line that may set a pool, comments aside.
pub fn first_mention(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| mentions_pool(line))
}

/// Whether a line may set a pool.
pub fn mentions_pool(line: &str) -> bool {
    let line = line.trim().to_ascii_lowercase();
    if line.starts_with(['#', ';']) || CONDITIONS.iter().any(|key| line.starts_with(key)) {
        return false;
    }
    let rest = OTHERS.iter().fold(line, |text, other| text.replace(other, ""));
    WORDS.iter().any(|word| rest.contains(word))
}

/// Whether a line applies /etc/sysctl.conf once more: `sysctl -p`, `sysctl --system` (sysctl(8)).
pub fn applies_sysctl_conf(line: &str) -> bool {
    let Some((_, behind)) = line.trim().split_once("sysctl ").filter(|(before, _)| !before.starts_with('#')) else {
        return false;
    };
    let words = behind.split(|c: char| c.is_whitespace() || ";&|\"'".contains(c)).filter(|word| !word.is_empty());
    let mut rest = words.skip_while(|word| !["-p", "--load", "--system"].contains(word));
    rest.next().is_some() && rest.next().is_none_or(|file| !file.starts_with('/') || file == "/etc/sysctl.conf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for line in [
            "ExecStart=/bin/sh -c 'echo 70 > /proc/sys/vm/nr_hugepages'",
            "  sysctl -w vm.nr_hugepages=70",
            "echo 4 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
            "@reboot root hugeadm --pool-pages-min 2MB:70",
            "NR_HUGEPAGES=70",
            "virsh allocpages --pagesize 2M --pagecount 70",
        ] {
            assert!(mentions_pool(line), "{line}");
        }
        for line in [
            "# echo 70 > /proc/sys/vm/nr_hugepages",
            "What=hugetlbfs",
            "Where=/dev/hugepages",
            "ConditionPathExists=/sys/kernel/mm/hugepages",
            "echo never > /sys/kernel/mm/transparent_hugepage/enabled",
            "vm.nr_overcommit_hugepages = 5",
        ] {
            assert!(!mentions_pool(line), "{line}");
        }
    }

    #[test]
    fn commands_of_sysctl() {
        for (line, expected) in [
            ("sysctl -p", true),
            ("ExecStart=/sbin/sysctl --system", true),
            ("/sbin/sysctl -q -p >/dev/null", true),
            ("@reboot sleep 9; sysctl -p /etc/sysctl.conf", true),
            ("sh -c 'sysctl -p; true'", true),
            ("# sysctl -p", false),
            ("sysctl -p /etc/sysctl.d/net.conf", false),
            ("sysctl -w net.ipv4.ip_forward=1", false),
            ("/usr/lib/systemd/systemd-sysctl", false),
        ] {
            assert_eq!(applies_sysctl_conf(line), expected, "{line}");
        }
    }
}
