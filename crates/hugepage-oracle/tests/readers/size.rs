//! What instances need.

use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_oracle::sga_size::{EXTRA, OracleNeed, StoppedOracleSize, granule, when_down};

use super::*;

fn huge() -> PageSize {
    PageSize::new(2 * MIB).unwrap()
}

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
fn an_instance_that_is_down() {
    let pages = |count| OracleNeed::Pages(Pages(count));
    for (expected, sga_max_size, automatic_memory, need) in [
        (Some(1537), None, false, pages(1541)),
        (None, Some(3 * GIB), false, pages(1540)),
        // A granule of 16 MB above 1 GB.
        (None, Some(1200 * MIB), false, pages(604)),
        (None, Some(1201 * MIB), false, pages(612)),
        (Some(1537), Some(3 * GIB), false, pages(1541)),
        (Some(769), Some(3 * GIB), false, pages(1540)),
        (Some(0), None, false, OracleNeed::Unknown),
        (None, None, false, OracleNeed::Unknown),
        (Some(1537), Some(3 * GIB), true, OracleNeed::AutomaticMemory),
    ] {
        let down = StoppedOracleSize {
            expected: expected.map(Pages),
            sga_max_size: sga_max_size.map(Bytes),
            automatic_memory,
        };
        assert_eq!(when_down(&down, huge()), need, "{down:?}");
    }
    assert_eq!(EXTRA, Pages(4));
}
