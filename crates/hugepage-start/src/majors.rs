//! The differences between PostgreSQL's majors in the size of shared memory.

/// The first major whose program tells the size.
pub const FIRST_MAJOR: u32 = 15;
/// The parameters that tell it, each with the first major that may have it. The second one is of a patch that is not committed
/// (commitfest 6652): what a start maps, of a segment that can grow.
pub(crate) const SIZE_PARAMETERS: [(u32, &str); 2] = [
    (FIRST_MAJOR, "shared_memory_size_in_huge_pages"),
    (20, "shared_memory_initial_size_in_huge_pages"),
];
/// The last major that counts one page more than the segment has where it fills its pages (ipci.c, `InitializeShmemGUCs`).
const LAST_MAJOR_WITH_ONE_TOO_MANY: u32 = 18;
/// The last major with 64 as the default of `max_locks_per_transaction` (guc_tables.c).
const LAST_MAJOR_WITH_64_LOCKS: u32 = 18;

/// The pages of a segment that fills its pages, of which the program of `major` counted `counted`; `None` if it can't have.
pub const fn exact_count(major: u32, counted: u64) -> Option<u64> {
    if major <= LAST_MAJOR_WITH_ONE_TOO_MANY {
        counted.checked_sub(1)
    } else {
        Some(counted)
    }
}

/// The default of `max_locks_per_transaction`.
pub const fn max_locks_per_transaction(major: u32) -> i32 {
    if major <= LAST_MAJOR_WITH_64_LOCKS {
        64
    } else {
        128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majors_at_their_border() {
        assert_eq!(
            [18, 19].map(|major| exact_count(major, 7)),
            [Some(6), Some(7)]
        );
        assert_eq!([18, 19].map(|major| exact_count(major, 0)), [None, Some(0)]);
        assert_eq!([18, 19].map(max_locks_per_transaction), [64, 128]);
    }
}
