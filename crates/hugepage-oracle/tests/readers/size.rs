//! The sizes of SGAs.

use hugepage_kernel::Bytes;
use hugepage_oracle::sga::{granule, rounded};

use super::*;

#[test]
fn granules_at_their_borders() {
    for (sga, size) in [
        (0, 4),
        (GIB, 4),
        (GIB + 1, 16),
        (8 * GIB, 16),
        (8 * GIB + 1, 32),
        (16 * GIB, 32),
        (32 * GIB, 64),
        (64 * GIB, 128),
        (128 * GIB, 256),
        (128 * GIB + 1, 512),
        (u64::MAX, 512),
    ] {
        assert_eq!(granule(Bytes(sga)), Bytes(size * MIB), "{sga}");
    }
}

#[test]
fn sizes_are_whole_granules() {
    // A granule of 16 MB above 1 GB.
    for (sga, size) in [
        (3 * GIB, 3 * GIB),
        (1200 * MIB, 1200 * MIB),
        (1201 * MIB, 1216 * MIB),
        (GIB - 1, GIB),
    ] {
        assert_eq!(rounded(Bytes(sga)), Bytes(size), "{sga}");
    }
}
