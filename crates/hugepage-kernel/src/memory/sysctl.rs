//! Kernel parameters: their running values (/proc/sys), and a line of sysctl.d (sysctl.d(5), sysctl(8)).

use crate::source::root::if_there;
use crate::{ReadError, Root};

/// The running value of a parameter such as `vm.swappiness`; `None` if this kernel does not have it.
pub fn running(root: &Root, name: &str) -> Result<Option<String>, ReadError> {
    if_there(root.read_short(&path(name), |text| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The file of a parameter in /proc/sys.
pub fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// `vm.nr_hugepages = 1073`, `vm/nr_hugepages=1073`, `-vm.nr_hugepages = 1073`; `None` for comments and other text.
pub fn parse(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_start_matches('-').trim_start();
    // The first separator decides: with a slash first, slashes separate and dots are part of a name.
    let name = match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name.replace('.', "\0").replace('/', ".").replace('\0', "/"),
        _ => name.to_owned(),
    };
    (!name.is_empty()).then(|| (name, value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let parsed = |line| parse(line).map(|(name, value)| format!("{name}={value}"));
        assert_eq!(parsed(" vm.nr_hugepages = 10 "), Some("vm.nr_hugepages=10".into()));
        assert_eq!(parsed("vm/nr_hugepages=10"), Some("vm.nr_hugepages=10".into()));
        assert_eq!(parsed("-vm.swappiness =1"), Some("vm.swappiness=1".into()));
        assert_eq!(parsed("net/ipv4/conf/eth0.1/rp_filter = 1"), Some("net.ipv4.conf.eth0/1.rp_filter=1".into()));
        for line in ["# vm.swappiness = 1", "; x = 1", "", "vm.swappiness", "= 3"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }
}
