//! What a page fault on shared memory costs on this machine.

/// CPU times of page faults on shared memory that is resident already, as a new session finds it. In seconds.
///
/// A read fault maps the pages around it too, up to `fault_around_bytes` (mm/memory.c), and a write fault maps one page. So
/// the time is that of the faults plus that of the pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultCost {
    /// The time of a fault, whatever it maps.
    pub per_fault: f64,
    /// The time for each base page that a fault maps.
    pub per_page: f64,
    /// The time of removing a base page from the page tables, as when a process ends.
    pub per_unmapped_page: f64,
    /// How many pages a read fault maps.
    pub pages_per_read_fault: f64,
}

impl FaultCost {
    /// From what touching `pages` pages took: by reads with `read_faults` faults, by writes with one fault each.
    pub fn of_runs(pages: f64, read_faults: f64, read: f64, write: f64, unmap: f64) -> Self {
        let share = (read_faults / pages).clamp(1.0 / 512.0, 1.0);
        // Without pages around a fault, both runs have the same faults.
        let per_fault = if share < 0.9 { ((write - read) / pages / (1.0 - share)).max(0.0) } else { write / pages };
        Self {
            per_fault,
            per_page: (read / pages - per_fault * share).max(0.0),
            per_unmapped_page: unmap / pages,
            pages_per_read_fault: 1.0 / share,
        }
    }

    /// The CPU seconds of `faults` that map `pages` base pages together.
    pub fn of_base(&self, faults: f64, pages: f64) -> f64 {
        faults * self.per_fault + pages * self.per_page
    }

    /// The CPU seconds of `faults` that map a huge page each: what mapping one base page costs. The kernel clears a huge
    /// page only once after a start.
    pub fn of_huge(&self, faults: f64) -> f64 {
        self.of_base(faults, faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured on a virtual machine with Linux 6.18: 4096 pages, 16 in a read fault.
    #[test]
    fn the_two_runs_separate_faults_from_pages() {
        let cost = FaultCost::of_runs(4096.0, 256.0, 4096.0 * 230e-9, 4096.0 * 1200e-9, 4096.0 * 150e-9);
        assert!((cost.per_fault - 1034.7e-9).abs() < 1e-10, "{cost:?}");
        assert!((cost.of_base(256.0, 4096.0) - 4096.0 * 230e-9).abs() < 1e-12);
        assert!((cost.of_base(4096.0, 4096.0) - 4096.0 * 1200e-9).abs() < 1e-12);
        assert!((cost.of_huge(1.0) - 1200e-9).abs() < 1e-12);
        assert!((cost.pages_per_read_fault - 16.0).abs() < 1e-9);
    }

    #[test]
    fn a_kernel_that_maps_single_pages() {
        let cost = FaultCost::of_runs(100.0, 100.0, 90e-6, 100e-6, 10e-6);
        assert_eq!((cost.per_page, cost.pages_per_read_fault), (0.0, 1.0));
        assert!((cost.per_fault - 1e-6).abs() < 1e-12);
        // A noisy run in which writes took less: no negative time.
        assert_eq!(FaultCost::of_runs(100.0, 7.0, 90e-6, 80e-6, 10e-6).per_fault, 0.0);
    }
}
