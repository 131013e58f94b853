//! Huge pages that a PostgreSQL postmaster does not give back when it restarts after a crash.
//!
//! With `io_method = io_uring` (PostgreSQL 18) each process has a ring, which the postmaster creates in the main segment
//! (method_io_uring.c). 18.6 unmaps the segment at a crash restart but closes no ring, and the kernel keeps the pages that
//! the rings lie in until the postmaster ends. Later sources of PostgreSQL close them. What a server does is seen by the
//! rings that are open after its first crash.

use hugepage_kernel::{PageSize, Pages};

use crate::model::{KeptPages, RingDemand};

/// The crashes that a recommended pool has spare pages for. Where it is unknown whether the server keeps rings, its first
/// crash shows it.
pub const fn crashes_to_hold(kept: KeptPages) -> u64 {
    if kept.at_least.0 > 0 { 10 } else { 1 }
}

/// The rings of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Those of the present segment.
    pub of_segment: RingDemand,
    /// How many are open, with those of segments that were lost at a crash.
    pub open: u64,
    /// The crashes that the postmaster has had; `None` if unknown.
    pub crashes: Option<u64>,
}

impl Rings {
    /// What each crash keeps of a pool with pages of `size`. Each of the two parts of a ring is a whole number of pages of
    /// `base`, the base page size. What the server has done at an earlier crash it does at the next one.
    pub fn pages(self, size: PageSize, base: PageSize) -> KeptPages {
        let RingDemand { count, .. } = self.of_segment;
        // The rings of the present segment are no earlier ones.
        let crashes = self.open.checked_div(count).unwrap_or(0).saturating_sub(1);
        if crashes == 0 && self.crashes.is_some_and(|crashes| crashes > 0) {
            return KeptPages::default();
        }
        let in_pages = size.pages_to_hold(self.of_segment.memory(count, base));
        let at_most = in_pages.saturating_add(Pages(u64::from(in_pages > Pages(0))));
        KeptPages { at_least: if crashes > 0 { in_pages } else { Pages(0) }, at_most, crashes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUGE: PageSize = PageSize::new(2 << 20).unwrap();
    const BASE: PageSize = PageSize::new(4 << 10).unwrap();

    fn rings(count: u64, entries: u64) -> Rings {
        Rings { of_segment: RingDemand { count, entries }, open: count, crashes: None }
    }

    /// A ring of 64 entries has a part of 2688 bytes and one of 4096.
    #[test]
    fn parts_are_whole_base_pages() {
        for (base_kib, huge_pages) in [(4, 4), (16, 16), (64, 64)] {
            let base = PageSize::from_kib(base_kib).unwrap();
            assert_eq!(rings(1024, 64).pages(HUGE, base).at_most, Pages(huge_pages + 1), "{base_kib} kB");
        }
    }

    #[test]
    fn pages_of_rings() {
        let pages = |count, entries| rings(count, entries).pages(HUGE, BASE);
        let kept =
            |at_least, at_most, crashes| KeptPages { at_least: Pages(at_least), at_most: Pages(at_most), crashes };
        // max_connections = 60: a crash of 18.6 kept one page. Before the first one it is unknown what the server does.
        assert_eq!(pages(102, 64), kept(0, 2, 0));
        assert_eq!(pages(542, 64), kept(0, 4, 0));
        assert_eq!(pages(102, 1024), kept(0, 7, 0));
        assert_eq!(pages(0, 64), KeptPages::default());
        // A server that has had none is as one of which it is unknown.
        let none_yet = Rings { crashes: Some(0), ..rings(102, 64) };
        assert_eq!(none_yet.pages(HUGE, BASE), kept(0, 2, 0));
        // After two crashes, and while a session has opened its own.
        let after = |open| Rings { open, crashes: Some(2), ..rings(102, 64) }.pages(HUGE, BASE);
        assert_eq!((after(310), after(310).before()), (kept(1, 2, 2), Pages(4)));
        assert_eq!(after(105), KeptPages::default(), "it closes its rings");
    }
}
