//! How many huge pages an Oracle instance needs, and how many Oracle's own script would recommend.

use hugepage_kernel::host::kernel_release::KernelRelease;
use hugepage_kernel::{Bytes, PageSize, Pages};

/// Pages that an instance needs beyond its SGA: since 12.1 a start expects a few pages more than SGA_MAX_SIZE has.
pub const EXTRA: Pages = Pages(4);

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The granule of an SGA: the unit in which shared memory grows, since 10.2.
pub fn granule(sga: Bytes) -> Bytes {
    /// The largest SGA in GB for a granule, and that granule in MB.
    const STEPS: [(u64, u64); 6] = [(1, 4), (8, 16), (16, 32), (32, 64), (64, 128), (128, 256)];
    const MAX_GRANULE_MIB: u64 = 512;
    let step = STEPS.into_iter().find(|(upto, _)| sga.0 <= upto * GIB);
    Bytes(step.map_or(MAX_GRANULE_MIB, |(_, granule)| granule) * MIB)
}

/// SGA_MAX_SIZE as the instance rounds it.
pub fn rounded(sga: Bytes) -> Bytes {
    let granule = granule(sga).0;
    Bytes(sga.0.div_ceil(granule).saturating_mul(granule))
}

/// What is known of a stopped instance that is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoppedOracleSize {
    /// The huge pages that its last start expected, of the size in question.
    pub expected: Option<Pages>,
    /// The size that its parameters ask for.
    pub sga_max_size: Option<Bytes>,
    /// Whether its parameters ask for Automatic Memory Management.
    pub automatic_memory: bool,
}

/// What an instance will need at its next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OracleNeed {
    /// This number of huge pages.
    Pages(Pages),
    /// None: its SGA will be files in /dev/shm, which are never in huge pages.
    AutomaticMemory,
    /// The need could not be determined.
    Unknown,
}

/// The need of a stopped instance: the larger of what its last start expected and what its parameters ask for, plus
/// [`EXTRA`].
pub fn when_down(down: &StoppedOracleSize, page_size: PageSize) -> OracleNeed {
    if down.automatic_memory {
        return OracleNeed::AutomaticMemory;
    }
    let configured = down.sga_max_size.map(|size| page_size.pages_to_hold(rounded(size)));
    match down.expected.max(configured) {
        Some(pages) if pages > Pages(0) => OracleNeed::Pages(pages.saturating_add(EXTRA)),
        _ => OracleNeed::Unknown,
    }
}

/// The need of a running instance: each segment takes whole pages.
pub fn when_running(segments: impl IntoIterator<Item = Bytes>, page_size: PageSize) -> Pages {
    segments.into_iter().fold(Pages(0), |sum, size| sum.saturating_add(page_size.pages_to_hold(size)))
}

/// A System V segment as hugepages_settings.sh sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SgaSegment {
    /// The size of the segment.
    pub size: Bytes,
    /// Whether an Oracle instance uses it. The script does not check that.
    pub of_oracle: bool,
}

/// What hugepages_settings.sh (MOS 401749.1) counts on this host, by its parts: `pages` = `needed` + `one_each` +
/// `of_others` - `skipped`. All known revisions count so; they differ in what they make of it ([`ScriptRevision`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptCount {
    /// The sum over the segments.
    pub pages: Pages,
    /// What the running Oracle instances need, by [`when_running`].
    pub needed: Pages,
    /// Excess: the script divides with `bc`, which rounds down, and adds a page to every segment for the rest, also to one
    /// that fills its pages.
    pub one_each: Pages,
    /// Counted for segments that are not Oracle's.
    pub of_others: Pages,
    /// Not counted, because the segments are smaller than a page.
    pub skipped: Pages,
}

/// A revision of the script, by the copies that are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptRevision {
    /// What tells it from the others.
    pub mark: &'static str,
    /// The pages that the sum of the script starts with.
    pub spare: Pages,
    /// The script prints an error instead of a smaller sum.
    pub min_memory: Bytes,
    /// The kernels of its list in the copy with the longest one; empty if it has none.
    pub kernels: &'static [(u32, u32)],
}

/// The known revisions, the oldest first.
pub const SCRIPT_REVISIONS: [ScriptRevision; 3] = [
    ScriptRevision {
        mark: "starts with NUM_PG=1",
        spare: Pages(1),
        min_memory: Bytes(0),
        kernels: &[(2, 4), (2, 6), (3, 8), (3, 10), (4, 1), (4, 14)],
    },
    ScriptRevision {
        mark: "starts with NUM_PG=0 and has a list of kernels",
        spare: Pages(0),
        min_memory: MIN_SCRIPT_MEMORY,
        kernels: &[(2, 4), (2, 6), (3, 8), (3, 10), (4, 1), (4, 14), (4, 18), (5, 4)],
    },
    ScriptRevision {
        mark: "starts with NUM_PG=0 and has no list of kernels",
        spare: Pages(0),
        min_memory: MIN_SCRIPT_MEMORY,
        kernels: &[],
    },
];

/// "An SGA less than 100MB does not make sense".
const MIN_SCRIPT_MEMORY: Bytes = Bytes(100_000_000);

/// What a revision prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptAnswer {
    /// This number of pages.
    Pages(Pages),
    /// No number, because the kernel is not in its list, which ends with this one.
    UnknownKernel(u32, u32),
    /// No number, because too little shared memory is in use.
    TooLittleMemory,
}

impl ScriptRevision {
    /// What it prints for this sum of pages of `size` on this kernel (`uname -r`).
    pub fn answer(&self, count: ScriptCount, size: PageSize, release: &str) -> ScriptAnswer {
        let pages = count.pages.saturating_add(self.spare);
        if size.times(pages) < self.min_memory {
            return ScriptAnswer::TooLittleMemory;
        }
        let kernel = KernelRelease::parse(release).map(|release| (release.major, release.minor));
        match self.kernels.last() {
            Some(&(major, minor)) if !kernel.is_some_and(|kernel| self.kernels.contains(&kernel)) => {
                ScriptAnswer::UnknownKernel(major, minor)
            }
            _ => ScriptAnswer::Pages(pages),
        }
    }
}

/// Counts as the script does, with the default page size, the only one that the script knows.
///
/// The script does not count stopped instances, takes the memory in use for the memory needed, and does not check the
/// host's memory.
pub fn hugepages_settings(segments: impl IntoIterator<Item = SgaSegment>, default_size: PageSize) -> ScriptCount {
    let mut count = ScriptCount::default();
    for SgaSegment { size, of_oracle } in segments {
        let needed = default_size.pages_to_hold(size);
        let whole = default_size.pages_within(size);
        let counted = if whole > Pages(0) { whole.saturating_add(Pages(1)) } else { Pages(0) };
        count.pages = count.pages.saturating_add(counted);
        if of_oracle {
            count.needed = count.needed.saturating_add(needed);
            count.one_each = count.one_each.saturating_add(counted.saturating_sub(needed));
            count.skipped = count.skipped.saturating_add(needed.saturating_sub(counted));
        } else {
            count.of_others = count.of_others.saturating_add(counted);
        }
    }
    count
}
