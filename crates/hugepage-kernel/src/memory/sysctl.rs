//! Kernel parameters: their running values (/proc/sys), and a line of sysctl.d (sysctl.d(5), sysctl(8)).

use crate::{ReadError, Root, if_there};

/// The running value of a parameter such as `vm.swappiness`; `None` if this kernel does not have it.
pub fn running(root: &Root, name: &str) -> Result<Option<String>, ReadError> {
    if_there(root.read_short(&path(name), |text| {
        text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }))
}

/// The running value of a parameter that is a number; `None` if it is not known.
pub fn running_number(root: &Root, name: &str) -> Option<u64> {
    running(root, name).ok()??.parse().ok()
}

/// The file of a parameter in /proc/sys.
pub fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// What systemd-sysctl takes from the ends of a name and of a value.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// A line of sysctl.d as systemd-sysctl reads it: the file below /proc/sys, or a pattern, and the value. Without one, earlier lines
/// and patterns do not set it. `None` for comments and other text.
pub fn parse(line: &str) -> Option<(String, Option<String>)> {
    let line = line.trim_matches(BLANKS);
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.strip_prefix('-').unwrap_or(name), Some(value)),
        None => (line.strip_prefix('-')?, None),
    };
    let value = value.map(|value| value.trim_matches(BLANKS).to_owned());
    Some((file(name.trim_matches(BLANKS)), value))
}

/// The first separator decides: with a slash first, slashes separate and dots are part of a name.
fn file(name: &str) -> String {
    let is_path = name
        .find(['.', '/'])
        .is_some_and(|at| name[at..].starts_with('/'));
    let swapped = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let path = if is_path {
        name.to_owned()
    } else {
        name.chars().map(swapped).collect()
    };
    let parts = path.split('/').filter(|part| !["", "."].contains(part));
    parts.collect::<Vec<_>>().join("/")
}

/// Whether a name of [`parse`] is `parameter`, or a pattern that may match it.
pub fn may_be(name: &str, parameter: &str) -> bool {
    match name.find(['*', '?', '[']) {
        Some(at) => {
            let separators = |path: &str| path.matches('/').count();
            parameter.starts_with(&name[..at]) && separators(name) == separators(parameter)
        }
        None => name == parameter,
    }
}

/// The digits that the kernel takes at most (`TMPBUFLEN` in kernel/sysctl.c).
const MAX_DIGITS: usize = 20;

/// The number that the kernel takes from a value, whatever follows a blank behind it; `None` if it refuses the value.
pub fn number(value: &str) -> Option<u64> {
    let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    let number = value.split([' ', '\t']).next()?;
    let of_base = |digits, base| u64::from_str_radix(digits, base).ok();
    match number.strip_prefix('0') {
        _ if number.len() > MAX_DIGITS => None,
        _ if !number.bytes().all(|byte| byte.is_ascii_alphanumeric()) => None,
        None | Some("") => number.parse().ok(),
        Some(rest) => match rest.strip_prefix(['x', 'X']) {
            Some(digits) => of_base(digits, 16),
            None => of_base(rest, 8),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let parsed = |line| {
            let (name, value) = parse(line)?;
            Some(format!("{name}={}", value.unwrap_or("nothing".to_owned())))
        };
        for (line, expected) in [
            (" vm.nr_hugepages = 10 ", "vm/nr_hugepages=10"),
            ("vm/nr_hugepages=10", "vm/nr_hugepages=10"),
            ("/vm//nr_hugepages/ = 10\r", "vm/nr_hugepages=10"),
            ("-vm.swappiness =1", "vm/swappiness=1"),
            ("-vm.swappiness", "vm/swappiness=nothing"),
            ("- vm.* ", "vm/*=nothing"),
            ("net/ipv4/conf/eth0.1/x = 1", "net/ipv4/conf/eth0.1/x=1"),
            ("net.ipv4.conf.eth0/1.x = 1", "net/ipv4/conf/eth0.1/x=1"),
            ("vm.nr_hugepages = 10\u{a0}", "vm/nr_hugepages=10\u{a0}"),
        ] {
            assert_eq!(parsed(line).as_deref(), Some(expected), "{line}");
        }
        for line in ["# vm.swappiness = 1", "; x = 1", "", "vm.swappiness"] {
            assert_eq!(parsed(line), None, "{line}");
        }
    }

    /// As Linux 6.1 takes them.
    #[test]
    fn numbers() {
        for (value, expected) in [
            ("8192", Some(8192)),
            ("0", Some(0)),
            ("8192 pages", Some(8192)),
            ("8192\t# x", Some(8192)),
            ("0x2000", Some(8192)),
            ("020000", Some(8192)),
            ("8192\u{a0}", None),
            ("8192\u{b}", None),
            ("\u{b} 8192", Some(8192)),
            ("00000000000000000007", Some(7)),
            ("000000000000000000007", None),
            ("18446744073709551616", None),
            ("8192x", None),
            ("8192,", None),
            ("+8192", None),
            ("-8192", None),
            ("0x+1", None),
            ("", None),
        ] {
            assert_eq!(number(value), expected, "{value}");
        }
    }

    #[test]
    fn patterns() {
        let of_pool = |name| may_be(name, "vm/nr_hugepages");
        assert!(["vm/nr_hugepages", "vm/nr_*", "v?/nr_hugepages", "*/*"].map(of_pool) == [true; 4]);
        assert!(["vm/s*", "*", "vm/nr_hugepages/*", "vm/nr"].map(of_pool) == [false; 4]);
    }
}
