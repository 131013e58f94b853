//! The largest shared_buffers with which shared memory certainly stays within a budget.
//!
//! Only the server's program knows the exact size for other values, so this is a bound, at most some percent below it.

use hugepage_kernel::Bytes;

/// Results are multiples of 1 MB.
const STEP: u64 = 1 << 20;
const BLOCK: u64 = 8192;
/// What a buffer costs at least and at most, with its descriptor and its entries in tables: measured 8372 to 8380 bytes, of
/// which 8 to 16 are of a hash table that grows by powers of two. Beyond [`MAX_REQUESTS`] buffers it may be less.
const BUFFER: (u64, u64) = (8364, 8380);
/// So many buffers have a request to the checkpointer each, of 32 bytes (checkpointer.c, `MAX_CHECKPOINT_REQUESTS`).
const MAX_REQUESTS: u64 = 10_000_000;
/// What those hash tables have for each entry of the next power of two.
const BUCKET: u64 = 16;
/// What grows with shared_buffers beside that, at most: wal_buffers (16 MB), and from 17 on three caches of 8 MB.
const CACHES: u64 = 64 << 20;

/// `buffers` and `size`: shared_buffers now, and the size of shared memory with it. `None` if no value fits for certain.
pub fn largest(budget: Bytes, buffers: Bytes, size: Bytes) -> Option<Bytes> {
    let (mut fits, mut exceeds) = (0, budget.0 / STEP);
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if at_most(middle * STEP, buffers.0, size.0) <= budget.0 {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    (fits > 0).then_some(Bytes(fits * STEP))
}

/// A bound of the size of shared memory with `wanted` in place of `buffers`.
fn at_most(wanted: u64, buffers: u64, size: u64) -> u64 {
    let (wanted, buffers) = (wanted / BLOCK, buffers / BLOCK);
    if wanted <= buffers {
        let requests = buffers.min(MAX_REQUESTS).saturating_sub(wanted);
        let fewer = (buffers - wanted).saturating_mul(BUFFER.0 - 32).saturating_add(requests * 32);
        return size.saturating_sub(fewer);
    }
    let buckets = wanted.next_power_of_two() - buffers.next_power_of_two();
    size.saturating_add((wanted - buffers).saturating_mul(BUFFER.1)).saturating_add(buckets * BUCKET + CACHES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the server's: hash tables that step by powers of two.
    fn size_of(buffers: u64, rest: u64) -> u64 {
        let blocks = buffers / BLOCK;
        blocks * 8364 + blocks.next_power_of_two() * BUCKET / 2 + rest
    }

    proptest! {
        #[test]
        fn fits_and_leaves_little(budget in 1u64..(1 << 38), now in 1u64..(1 << 15), rest in 0u64..(1 << 28)) {
            let now = now << 20;
            let found = largest(Bytes(budget), Bytes(now), Bytes(size_of(now, rest)));
            if let Some(found) = found {
                prop_assert!(size_of(found.0, rest) <= budget);
            }
            let found = found.map_or(0, |found| found.0);
            // Of the difference to what is there now, some hundredths, and half of the hash tables' next power of two.
            let tables = (now.max(found) / BLOCK).next_power_of_two() * BUCKET;
            let more = found + found.abs_diff(now) / 50 + tables + CACHES + 2 * STEP;
            prop_assert!(size_of(more, rest) > budget, "{} fits as well", Bytes(more));
        }
    }

    /// By how much shared memory grows or shrinks with so many buffers of 1 GB more or fewer.
    #[test]
    fn bounds() {
        let (buffers, size) = (1 << 30, 1100 << 20);
        let more = |blocks: u64| at_most(buffers + blocks * BLOCK, buffers, size) - size;
        assert_eq!([more(1), more(2)], [8380 + BUCKET * (1 << 17) + CACHES, 2 * 8380 + BUCKET * (1 << 17) + CACHES]);
        assert_eq!(CACHES, 67_108_864);
        let fewer = |blocks: u64| size - at_most(buffers - blocks * BLOCK, buffers, size);
        assert_eq!([fewer(0), fewer(1), fewer(2)], [0, 8364, 2 * 8364]);
        // Beyond as many buffers, none of them has a request.
        let large = (MAX_REQUESTS + 10) * BLOCK;
        let fewer = |blocks: u64| 2 * large - at_most(large - blocks * BLOCK, large, 2 * large);
        assert_eq!([fewer(10), fewer(11)], [10 * 8332, 11 * 8332 + 32]);
    }

    #[test]
    fn less_than_one_step_is_no_number() {
        assert_eq!(largest(Bytes(STEP - 1), Bytes(1 << 27), Bytes(1 << 28)), None);
        assert_eq!(largest(Bytes(1 << 26), Bytes(1 << 27), Bytes(1 << 28)), None);
    }
}
