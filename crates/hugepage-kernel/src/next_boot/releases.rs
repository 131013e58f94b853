//! The releases that the kernel of the next boot may have, as far as they read the command line differently.

use crate::host::kernel_release::KernelRelease;

/// A series of kernels: the first two numbers of a release.
pub type KernelSeries = (u32, u32);

/// The first kernel in which a size that is not supported drops the count behind it.
pub const DROPS_COUNTS: KernelSeries = (4, 7);
/// The first kernel that parses counts and sizes as today's do, and takes parameters of the form `sysctl.`.
pub const PARSES_ANEW: KernelSeries = (5, 8);
/// The first kernel with counts of NUMA nodes.
pub const COUNTS_OF_NODES: KernelSeries = (5, 16);
/// The first kernel that takes a limited number of parameters.
pub const LIMITS_PARAMETERS: KernelSeries = (6, 15);
const CHANGES: [KernelSeries; 4] = [DROPS_COUNTS, PARSES_ANEW, COUNTS_OF_NODES, LIMITS_PARAMETERS];

/// The releases that are possible, one for each set of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Releases {
    possible: Vec<KernelSeries>,
    /// Whether it is certainly the running kernel.
    pub is_running: bool,
}

impl Releases {
    /// The kernel in the file `image`, where `running` runs: `vmlinuz-5.14.0-427.el9.x86_64`. A name without a number stands for
    /// the running kernel or a newer one.
    pub fn of_image(image: &str, running: Option<&str>) -> Self {
        let name = image.rsplit('/').next().unwrap_or(image);
        let release = name.find(|c: char| c.is_ascii_digit()).map(|at| &name[at..]);
        if let Some((release, parsed)) = release.and_then(|text| Some((text, KernelRelease::parse(text)?))) {
            let is_running = running.is_some_and(|running| release.contains(running));
            return Self { is_running, ..Self::since(parsed, parsed.has_backports) };
        }
        match running.and_then(KernelRelease::parse) {
            Some(running) => Self::since(running, true),
            None => Self::unnamed(),
        }
    }

    /// The kernel that runs.
    pub fn running(release: Option<&str>) -> Self {
        let of_release = |release: KernelRelease| Self::since(release, release.has_backports);
        Self { is_running: true, ..release.and_then(KernelRelease::parse).map_or_else(Self::unnamed, of_release) }
    }

    /// A release, and where it may have more, that of every later change.
    fn since(release: KernelRelease, may_have_later: bool) -> Self {
        let release = (release.major, release.minor);
        let later = CHANGES.into_iter().filter(|change| may_have_later && *change > release);
        Self { possible: std::iter::once(release).chain(later).collect(), is_running: false }
    }

    /// Each host names the release that it runs. A tree that does not is read as those of long-term kernels that are in use.
    fn unnamed() -> Self {
        Self { possible: vec![PARSES_ANEW, COUNTS_OF_NODES], is_running: false }
    }

    /// One release for each set of rules that is possible.
    pub fn possible(&self) -> impl Iterator<Item = KernelSeries> + '_ {
        self.possible.iter().copied()
    }
}
