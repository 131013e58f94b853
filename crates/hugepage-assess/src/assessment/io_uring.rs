//! Huge pages that a PostgreSQL postmaster does not give back when it restarts after a crash.
//!
//! With `io_method = io_uring` (PostgreSQL 18) each process has a ring, which the postmaster creates in the main segment
//! (method_io_uring.c). A crash restart unmaps the segment but closes no ring, and the kernel keeps the pages that the
//! rings lie in until the postmaster ends. Seen in 18.6; no release is known that closes them.

use hugepage_kernel::{Bytes, PageSize, Pages};

use crate::model::KeptPages;

/// The crashes that a recommended pool has spare pages for.
pub const CRASHES: u64 = 10;

/// The header of `struct io_rings`, rounded up (io_uring/io_uring.c).
const RING_HEADER: u64 = 384;
/// The size of a completion queue entry; there are two for each submission (io_uring_setup(2)).
const COMPLETION: u64 = 16;
/// The size of a submission queue entry, and of its index.
const SUBMISSION: u64 = 64;
const INDEX: u64 = 4;

/// The rings of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// How many.
    pub count: u64,
    /// How many are open, with those of segments that were lost at a crash.
    pub open: u64,
    /// The submissions that each has room for: `io_max_concurrency`.
    pub entries: u64,
}

impl Rings {
    /// The pages of `size` that they lie in. Each of the two parts of a ring is a whole number of pages of `base`, the base
    /// page size.
    pub fn pages(self, size: PageSize, base: PageSize) -> KeptPages {
        let entries = self.entries.max(1).next_power_of_two();
        let queues = RING_HEADER + entries * (2 * COMPLETION + INDEX);
        let part = base.bytes().0;
        let ring = queues.next_multiple_of(part) + (entries * SUBMISSION).next_multiple_of(part);
        let at_least = size.pages_to_hold(Bytes(ring.saturating_mul(self.count)));
        let at_most = at_least.saturating_add(Pages(u64::from(at_least > Pages(0))));
        // The rings of the present segment are no earlier ones.
        let crashes = self.open.checked_div(self.count).unwrap_or(0).saturating_sub(1);
        KeptPages { at_least, at_most, crashes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: PageSize = PageSize::new(2 << 20).unwrap();
    const BASE: PageSize = PageSize::new(4 << 10).unwrap();

    /// A ring of 64 entries has a part of 2688 bytes and one of 4096.
    #[test]
    fn parts_are_whole_base_pages() {
        let rings = Rings { count: 1024, open: 1024, entries: 64 };
        for (base_kib, huge_pages) in [(4, 4), (16, 16), (64, 64)] {
            let base = PageSize::from_kib(base_kib).unwrap();
            assert_eq!(rings.pages(HUGE, base).at_least, Pages(huge_pages), "{base_kib} kB");
        }
    }

    #[test]
    fn pages_of_rings() {
        let pages = |count, entries| Rings { count, open: count, entries }.pages(HUGE, BASE);
        let kept = |at_least, at_most| KeptPages { at_least: Pages(at_least), at_most: Pages(at_most), crashes: 0 };
        // max_connections = 60 in 18.6: each crash kept one page.
        assert_eq!(pages(102, 64), kept(1, 2));
        assert_eq!(pages(542, 64), kept(3, 4));
        assert_eq!(pages(102, 1024), kept(6, 7));
        assert_eq!(pages(0, 64), KeptPages::default());
        // After two crashes, and while a session has opened its own.
        let after = Rings { count: 102, open: 310, entries: 64 }.pages(HUGE, BASE);
        assert_eq!((after.crashes, after.before()), (2, Pages(4)));
    }
}
