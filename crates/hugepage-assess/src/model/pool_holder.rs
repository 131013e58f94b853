//! A program that has huge pages beside the database servers of a host.

use std::fmt;

use hugepage_kernel::{Bytes, Pages};

/// The processes of one name and user that have huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolHolder {
    /// The name that the kernel shows of them: at most 15 characters.
    pub name: String,
    /// Their user.
    pub user: String,
    /// How many; none of files that no process has mapped.
    pub processes: u64,
    /// What they have mapped of pools of all sizes.
    pub memory: Bytes,
    /// In pages; `None` where pools of several sizes are in use.
    pub pages: Option<Pages>,
}

impl PoolHolder {
    /// A clause behind a sentence on the `others` pages that others hold; empty where it is unknown how many of them these are.
    pub fn clause(&self, others: Pages) -> String {
        match self.pages.filter(|pages| *pages > Pages(0) && *pages <= others) {
            Some(pages) => format!("; {self} {} {pages} pages", self.verb()),
            None => String::new(),
        }
    }
}

impl PoolHolder {
    /// `holds`, of files `hold`.
    pub const fn verb(&self) -> &'static str {
        if self.processes == 0 { "hold" } else { "holds" }
    }
}

impl fmt::Display for PoolHolder {
    /// `qemu-system-x86 (libvirt-qemu)`, `files in /dev/hugepages (hugetlbfs)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.user)
    }
}
