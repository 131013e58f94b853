//! What instances need, and what Oracle's script makes of it.

use hugepage_kernel::{Bytes, PageSize, Pages};
use hugepage_oracle::sga_size::{
    self, EXTRA, OracleNeed, SCRIPT_REVISIONS, ScriptAnswer, ScriptCount, SgaSegment, StoppedOracleSize, granule,
    hugepages_settings, when_down,
};
use proptest::prelude::*;

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

fn segments(sizes: &[u64], of_oracle: bool) -> Vec<SgaSegment> {
    sizes.iter().map(|&size| SgaSegment { size: Bytes(size), of_oracle }).collect()
}

/// An SGA in segments of 4 MB comes out half as large again.
#[test]
fn the_script_adds_a_page_to_every_segment() {
    let count = hugepages_settings(segments(&[4 * MIB; 128], true), huge());
    let expected =
        ScriptCount { pages: Pages(384), needed: Pages(256), one_each: Pages(128), ..ScriptCount::default() };
    assert_eq!(count, expected);
}

#[test]
fn the_script_counts_others_and_skips_what_is_small() {
    let mut all = segments(&[3 * GIB + 1, MIB, 100], true);
    all.extend(segments(&[GIB, 56], false));
    let count = hugepages_settings(all, huge());
    let expected = ScriptCount {
        pages: Pages(1537 + 513),
        needed: Pages(1537 + 1 + 1),
        one_each: Pages(0),
        of_others: Pages(513),
        skipped: Pages(2),
    };
    assert_eq!(count, expected);
}

/// Each as in a public copy of it: where its sum starts, what it refuses, and which kernels it lists.
#[test]
fn what_the_revisions_of_the_script_print() {
    let large = hugepages_settings(segments(&[GIB], true), huge());
    let small = hugepages_settings(segments(&[90 * MIB], true), huge());
    let (pages, unknown) = (|pages| ScriptAnswer::Pages(Pages(pages)), ScriptAnswer::UnknownKernel);
    let little = ScriptAnswer::TooLittleMemory;
    for (count, release, expected) in [
        (large, "2.6.32-431.el6.x86_64", [pages(514), pages(513), pages(513)]),
        (large, "3.10.0-1160.el7.x86_64", [pages(514), pages(513), pages(513)]),
        (large, "4.14.35-1902.el7uek.x86_64", [pages(514), pages(513), pages(513)]),
        (large, "4.18.0-477.el8.x86_64", [unknown(4, 14), pages(513), pages(513)]),
        (large, "5.4.17-2136.el8uek.x86_64", [unknown(4, 14), pages(513), pages(513)]),
        (large, "5.15.0-101.103.2.1.el8uek.x86_64", [unknown(4, 14), unknown(5, 4), pages(513)]),
        (large, "6.18.0", [unknown(4, 14), unknown(5, 4), pages(513)]),
        (large, "", [unknown(4, 14), unknown(5, 4), pages(513)]),
        (small, "3.10.0", [pages(47), little, little]),
    ] {
        let found = SCRIPT_REVISIONS.map(|revision| revision.answer(count, huge(), release));
        assert_eq!(found, expected, "{release}");
    }
}

proptest! {
    /// The parts add up to what the script says, whatever the segments are.
    #[test]
    fn the_explanation_is_complete(sizes in prop::collection::vec((0..u64::MAX >> 12, any::<bool>()), 0..50)) {
        let all = sizes.iter().map(|&(size, of_oracle)| SgaSegment { size: Bytes(size), of_oracle });
        let count = hugepages_settings(all.clone(), huge());
        let ours = all.filter(|segment| segment.of_oracle).map(|segment| segment.size);
        prop_assert_eq!(count.needed, sga_size::when_running(ours, huge()));
        let parts = count.needed.0 + count.one_each.0 + count.of_others.0;
        prop_assert_eq!(count.pages.0, parts - count.skipped.0);
    }
}
