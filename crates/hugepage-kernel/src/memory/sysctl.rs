//! Kernel parameters: their running values (/proc/sys), and what the files of sysctl.d set at the next boot
//! (sysctl.d(5), sysctl(8)).

use std::collections::BTreeMap;

use crate::source::root::if_there;
use crate::{ReadError, Root};

/// The directories of systemd-sysctl, the most important first. A file hides files of the same name in later ones.
const DIRECTORIES: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];

const SYSCTL_CONF: &str = "/etc/sysctl.conf";

/// The running value of a parameter such as `vm.swappiness`; `None` if this kernel does not have it.
pub fn running(root: &Root, name: &str) -> Result<Option<String>, ReadError> {
    if_there(root.read_once(&path(name), |text| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The file of a parameter in /proc/sys.
pub fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// An assignment that will be made at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The value as written.
    pub value: String,
    /// The file that has it.
    pub file: String,
}

/// The parameters that the next boot will set, by names with dots: the last assignment in the order of file names.
///
/// systemd reads only the directories (`/etc/sysctl.conf` counts if a directory links to it). Without systemd,
/// sysctl(8) reads `/etc/sysctl.conf` last.
pub fn at_next_boot(root: &Root) -> Result<BTreeMap<String, Assignment>, ReadError> {
    Ok(in_order_at_next_boot(root)?.into_iter().collect())
}

/// The assignments that the next boot will make, in their order.
pub fn in_order_at_next_boot(root: &Root) -> Result<Vec<(String, Assignment)>, ReadError> {
    let has_systemd = root.exists("/run/systemd/system");
    let mut files = BTreeMap::new();
    for directory in DIRECTORIES {
        for name in if_there(root.list(directory))?.unwrap_or_default() {
            if name.ends_with(".conf") {
                let path = format!("{directory}/{name}");
                files.entry(name).or_insert(path);
            }
        }
    }
    let mut paths: Vec<_> = files.into_values().collect();
    if !has_systemd {
        paths.push(SYSCTL_CONF.to_owned());
    }
    let mut assignments: Vec<(String, Assignment)> = Vec::new();
    for path in paths {
        for (name, assignment) in of_file(root, &path)? {
            let before = assignments.iter().position(|(other, _)| *other == name);
            match before {
                // systemd keeps the place of one that it has already.
                Some(at) if has_systemd && assignments[at].1.value == assignment.value => {
                    assignments[at].1 = assignment
                }
                Some(at) => {
                    assignments.remove(at);
                    assignments.push((name, assignment));
                }
                None => assignments.push((name, assignment)),
            }
        }
    }
    Ok(assignments)
}

/// What /etc/sysctl.conf assigns, which systemd does not read.
pub fn of_sysctl_conf(root: &Root) -> Result<Vec<(String, Assignment)>, ReadError> {
    of_file(root, SYSCTL_CONF)
}

/// The assignments of one file in their order; none if it is not there, or a dangling link.
fn of_file(root: &Root, path: &str) -> Result<Vec<(String, Assignment)>, ReadError> {
    let text = if_there(root.read(path))?.unwrap_or_default();
    let assignment = |(name, value)| (name, Assignment { value, file: path.to_owned() });
    Ok(text.lines().filter_map(parse).map(assignment).collect())
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
    use std::fs;

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

    #[test]
    fn precedence_of_files() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let root = Root::at(tree.path());
        let value = |name: &str| at_next_boot(&root).unwrap().get(name).map(|found| found.value.clone());
        assert_eq!(value("vm.nr_hugepages"), None);
        write("usr/lib/sysctl.d/50-db.conf", "vm.nr_hugepages = 1\nvm.swappiness = 10\n");
        write("usr/lib/sysctl.d/60-db.conf", "vm.nr_hugepages = 2\n");
        write("etc/sysctl.d/README", "vm.nr_hugepages = 99\n");
        assert_eq!(value("vm.nr_hugepages").as_deref(), Some("2"));
        // The same name in /etc hides the vendor's file, all of it.
        write("etc/sysctl.d/60-db.conf", "# nothing\n");
        assert_eq!(value("vm.nr_hugepages").as_deref(), Some("1"));
        write("etc/sysctl.d/50-db.conf", "vm.nr_hugepages = 3\n");
        assert_eq!((value("vm.nr_hugepages").as_deref(), value("vm.swappiness")), (Some("3"), None));
        // Without systemd sysctl.conf is read last; with it, only through a link.
        write("etc/sysctl.conf", "vm.nr_hugepages = 4\n");
        assert_eq!(value("vm.nr_hugepages").as_deref(), Some("4"));
        fs::create_dir_all(tree.path().join("run/systemd/system")).unwrap();
        assert_eq!(value("vm.nr_hugepages").as_deref(), Some("3"));
        std::os::unix::fs::symlink("../sysctl.conf", tree.path().join("etc/sysctl.d/99-sysctl.conf")).unwrap();
        assert_eq!(value("vm.nr_hugepages").as_deref(), Some("4"));
    }
}
