//! The release of a kernel, as uname(2) and /proc/sys/kernel/osrelease give it: `5.14.0-427.el9.x86_64`.

use crate::Root;
use crate::memory::sysctl;

/// The leading numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRelease {
    /// The first number: 5 of 5.14.0.
    pub major: u32,
    /// The second number: 14 of 5.14.0.
    pub minor: u32,
    /// The third number; `None` if the release does not have one.
    pub patch: Option<u32>,
    /// Whether the distribution takes over much of later kernels: Enterprise Linux 9 (not UEK), SUSE.
    pub has_backports: bool,
    /// Whether the distribution counts its own builds instead of the third number: `6.1.0-18-amd64`, `6.8.0-45-generic`.
    pub hides_patch: bool,
}

impl KernelRelease {
    /// The kernel that runs; `None` if its release could not be read.
    pub fn running(root: &Root) -> Option<Self> {
        Self::parse(&Self::text(root)?)
    }

    /// The release of the kernel that runs, as it is; `None` if it could not be read.
    pub fn text(root: &Root) -> Option<String> {
        sysctl::running(root, "kernel.osrelease").ok()?
    }

    /// Parses a release; `None` if it does not begin with two numbers.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release
            .split(|c: char| !c.is_ascii_digit())
            .map_while(|number| number.parse().ok());
        let is_el = release.contains(".el") && !release.contains("uek");
        let has_backports = is_el || release.contains("-default") || release.contains("-azure");
        let major = numbers.next()?;
        let minor = numbers.next()?;
        let patch = numbers.next();
        let build = release.strip_prefix(&format!("{major}.{minor}.0-"));
        let hides_patch =
            build.is_some_and(|build| build.starts_with(|c: char| c.is_ascii_digit()));
        Some(Self {
            major,
            minor,
            patch,
            has_backports,
            hides_patch,
        })
    }

    /// Whether the kernel is certainly older than `major.minor.patch`.
    pub fn is_before(self, major: u32, minor: u32, patch: u32) -> bool {
        (self.major, self.minor, self.patch.unwrap_or(u32::MAX)) < (major, minor, patch)
    }
}
