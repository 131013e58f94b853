//! The huge pages that an Oracle instance needs.

use hugepage_kernel::{Bytes, Pages};

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
