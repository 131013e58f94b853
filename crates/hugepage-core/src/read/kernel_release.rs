//! The release of a kernel, as uname(2) and /proc/sys/kernel/osrelease give it: `5.14.0-427.el9.x86_64`.

use crate::read::{Root, sysctl};

/// The leading numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRelease {
    /// The first number: 5 of 5.14.0.
    pub major: u32,
    /// The second number: 14 of 5.14.0.
    pub minor: u32,
    /// The third number; `None` if the release does not have one.
    pub patch: Option<u32>,
    /// Whether it is of a distribution that takes over much of later kernels: Enterprise Linux 9 (not UEK), SUSE.
    pub has_backports: bool,
}

impl KernelRelease {
    /// The kernel that runs; `None` if its release could not be read.
    pub fn running(root: &Root) -> Option<Self> {
        Self::parse(&sysctl::running(root, "kernel.osrelease").ok()??)
    }

    /// Parses a release; `None` if it does not begin with two numbers.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
        let is_el = release.contains(".el") && !release.contains("uek");
        let has_backports = is_el || release.contains("-default") || release.contains("-azure");
        Some(Self { major: numbers.next()?, minor: numbers.next()?, patch: numbers.next(), has_backports })
    }

    /// Whether it lets a process have System V segments in huge pages if `RLIMIT_MEMLOCK` allows their size. Kernels
    /// since 5.18 do not (fs/hugetlbfs/inode.c). `None` for a distribution's kernel from 5.14 on, which may have that
    /// change already; older ones announce it only.
    pub fn counts_memlock(self) -> Option<bool> {
        match (self.is_before(5, 14, 0), self.is_before(5, 18, 0)) {
            (true, _) => Some(true),
            (_, true) => (!self.has_backports).then_some(true),
            (_, false) => Some(false),
        }
    }

    /// Whether it is certainly older than `major.minor.patch`.
    pub fn is_before(self, major: u32, minor: u32, patch: u32) -> bool {
        (self.major, self.minor, self.patch.unwrap_or(u32::MAX)) < (major, minor, patch)
    }
}
