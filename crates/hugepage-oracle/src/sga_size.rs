//! The huge pages that an Oracle instance needs.

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

/// The size of an SGA with SGA_MAX_SIZE `sga`, rounded up as the instance does.
pub fn rounded(sga: Bytes) -> Bytes {
    let granule = granule(sga).0;
    Bytes(sga.0.div_ceil(granule).saturating_mul(granule))
}

/// The size of a stopped instance, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoppedOracleSize {
    /// The huge pages that the last start expected, of the size in question; `None` if unknown.
    pub expected: Option<Pages>,
    /// The size that the parameters ask for; `None` if unknown.
    pub sga_max_size: Option<Bytes>,
    /// Whether the parameters ask for Automatic Memory Management.
    pub automatic_memory: bool,
}

/// The huge pages that an instance will need at its next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OracleNeed {
    /// The number of huge pages.
    Pages(Pages),
    /// No huge pages: the SGA will be files in /dev/shm, which are never in huge pages.
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
