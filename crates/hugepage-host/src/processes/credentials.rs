//! Which user a process is of, from /proc/PID/status (proc(5)), which everybody may read. In a user namespace the numbers
//! are those of this program's own namespace (user_namespaces(7)).

use hugepage_kernel::fields::value;
use hugepage_kernel::proc::process::unless_gone;
use hugepage_kernel::{ReadError, Root};

/// User and groups of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The real user: the first number of `Uid`.
    pub real: u32,
    /// The effective user: the second number of `Uid`.
    pub effective: u32,
    /// The saved user: the third number of `Uid`.
    pub saved: u32,
    /// The real one of `Gid`, and `Groups`.
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The user and groups of `pid`; `Ok(None)` if there is no such process, or a tree has nothing of it.
    pub fn read(root: &Root, pid: i32) -> Result<Option<Self>, ReadError> {
        Ok(unless_gone(root.read_short(&format!("/proc/{pid}/status"), Self::parse))?.flatten())
    }

    /// Takes the text of /proc/PID/status.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = |name| -> Option<Vec<u32>> {
            value(text, name)?.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
        };
        let &[real, effective, saved, _] = numbers("Uid")?.as_slice() else { return None };
        let mut groups = vec![*numbers("Gid")?.first()?];
        groups.extend(numbers("Groups").unwrap_or_default());
        Some(Self { real, effective, saved, groups })
    }

    /// All users whose powers it has.
    pub fn users(&self) -> [u32; 3] {
        [self.real, self.effective, self.saved]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_a_status() {
        let text = "Name:\tpostgres\nUid:\t101\t101\t101\t101\nGid:\t104\t104\t104\t104\nGroups:\t103 104 \n";
        let found = Credentials::parse(text).unwrap();
        assert_eq!((found.users(), found.groups.as_slice()), ([101; 3], &[104, 103, 104][..]));
        assert_eq!(Credentials::parse("Name:\tpostgres\nPPid:\t1\n"), None);
        assert_eq!(Credentials::parse("Uid:\t1\t2\nGid:\t1\t1\t1\t1\n"), None);
    }
}
