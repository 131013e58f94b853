//! Measures what page faults on shared memory cost, in memory of this process.
//!
//! The measurement maps shared memory as a server does, fills it, and maps the same memory again as a new session does: the pages are
//! there, the page tables are not. It takes no page of a pool: a server that starts at that moment might lack it.

use std::io;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use hugepage_kernel::{Bytes, PageSize};

use crate::model::FaultCost;

/// The memory that is mapped again.
const MAPPED_SIZE: Bytes = Bytes(16 << 20);
/// The memory that is read before that, so that the kernel's data about these pages is no more in the caches than in a
/// session that maps much shared memory. Without it a page took a fifth less time than with 4 GB.
const EVICTION_SIZE: Bytes = Bytes(16 << 20);
/// The size of a cache line in bytes; reading one byte of each is enough.
const CACHE_LINE: usize = 64;
/// The number of runs that count each time. One before them does not: the first after a pause takes longer.
const RUNS: usize = 3;
/// The shortest time from one measurement to the next within an observation.
const PAUSE: Duration = Duration::from_secs(10);
/// The most measurements within an observation.
const MEASUREMENTS: u32 = 10;

/// The CPU times in seconds of touching that memory, one of each run so far.
///
/// The cost of a page differs from one second to the next, by what else the CPU and its caches have to do; the server's
/// faults meet the same. So the runs should be taken at more than one moment, and the median of them counts.
#[derive(Debug, Default)]
pub struct FaultCostRuns {
    pages: f64,
    read_faults: Vec<f64>,
    read: Vec<f64>,
    write: Vec<f64>,
    unmap: Vec<f64>,
    measured: Option<Instant>,
}

impl FaultCostRuns {
    /// Whether to measure again, within an observation that takes `interval`.
    #[must_use]
    pub fn is_due(&self, interval: Duration) -> bool {
        self.measured.is_none_or(|time| time.elapsed() >= PAUSE.max(interval / MEASUREMENTS))
    }

    /// Measures for some 40 ms of CPU time, with 32 MB of memory. `check` is called before each run.
    pub fn measure(&mut self, mut check: impl FnMut()) -> io::Result<()> {
        self.measured = Some(Instant::now());
        let page = usize::try_from(PageSize::base().bytes().0).unwrap_or(usize::MAX);
        let [memory, other] =
            [MAPPED_SIZE, EVICTION_SIZE].map(|size| SharedMapping::new(usize::try_from(size.0).unwrap_or(usize::MAX)));
        let (memory, other) = (memory?, other?);
        memory.write_each(page);
        other.write_each(page);
        for run in 0..=RUNS {
            check();
            let again = memory.map_again()?;
            other.read_each(CACHE_LINE);
            let begun = ThreadUsage::now()?;
            again.read_each(page);
            let mapped = ThreadUsage::now()?;
            drop(again);
            let unmapped = ThreadUsage::now()?;
            let again = memory.map_again()?;
            other.read_each(CACHE_LINE);
            let before_writes = ThreadUsage::now()?;
            again.write_each(page);
            let written = ThreadUsage::now()?;
            if run > 0 {
                self.read_faults.push(mapped.faults - begun.faults);
                self.read.push(mapped.seconds - begun.seconds);
                self.unmap.push(unmapped.seconds - mapped.seconds);
                self.write.push(written.seconds - before_writes.seconds);
            }
        }
        #[allow(clippy::cast_precision_loss)]
        {
            self.pages = (memory.length / page) as f64;
        }
        Ok(())
    }

    /// The medians of all runs; `None` if there was none.
    #[must_use]
    pub fn cost(&self) -> Option<FaultCost> {
        let median = |runs: &[f64]| median(runs.to_vec());
        Some(FaultCost::of_runs(
            self.pages,
            median(&self.read_faults)?,
            median(&self.read)?,
            median(&self.write)?,
            median(&self.unmap)?,
        ))
    }
}

fn median(mut runs: Vec<f64>) -> Option<f64> {
    runs.sort_by(f64::total_cmp);
    let upper = runs.get(runs.len() / 2)?;
    let lower = runs.get((runs.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

/// The CPU time in seconds and the page faults of this thread so far.
struct ThreadUsage {
    seconds: f64,
    faults: f64,
}

impl ThreadUsage {
    #[allow(clippy::cast_precision_loss)]
    fn now() -> io::Result<Self> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: getrusage fills a struct of integers.
        #[allow(unsafe_code)]
        let (usage, failed) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let failed = libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) != 0
                || libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) != 0;
            (usage, failed)
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9, faults: usage.ru_minflt as f64 })
    }
}

/// A shared mapping of this process, removed on drop.
pub(super) struct SharedMapping {
    start: NonNull<libc::c_void>,
    length: usize,
}

impl SharedMapping {
    /// New memory in base pages, of the kind of a server's main segment (sysv_shmem.c).
    pub(super) fn new(length: usize) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        #[allow(unsafe_code)]
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
        let mapping = Self::at(start, length)?;
        // Without effect where the kernel has no transparent huge pages.
        // SAFETY: advice on this value's own mapping.
        #[allow(unsafe_code)]
        unsafe {
            libc::madvise(mapping.start.as_ptr(), length, libc::MADV_NOHUGEPAGE);
        }
        Ok(mapping)
    }

    /// Maps the same memory a second time: mremap(2) does so if the old size is zero.
    fn map_again(&self) -> io::Result<Self> {
        // SAFETY: the mapping is shared and stays; the new one is at an address that the kernel chooses.
        #[allow(unsafe_code)]
        let start = unsafe { libc::mremap(self.start.as_ptr(), 0, self.length, libc::MREMAP_MAYMOVE) };
        Self::at(start, self.length)
    }

    fn at(start: *mut libc::c_void, length: usize) -> io::Result<Self> {
        match NonNull::new(start).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length }),
            None => Err(io::Error::last_os_error()),
        }
    }

    fn read_each(&self, page: usize) {
        for offset in (0..self.length).step_by(page) {
            // SAFETY: a byte within the mapping.
            #[allow(unsafe_code)]
            unsafe {
                self.start.as_ptr().cast::<u8>().add(offset).read_volatile();
            }
        }
    }

    pub(super) fn write_each(&self, page: usize) {
        for offset in (0..self.length).step_by(page) {
            // SAFETY: a byte within the mapping, of which no reference exists.
            #[allow(unsafe_code)]
            unsafe {
                self.start.as_ptr().cast::<u8>().add(offset).write_volatile(1);
            }
        }
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing refers to it.
        #[allow(unsafe_code)]
        unsafe {
            libc::munmap(self.start.as_ptr(), self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_takes_time_for_faults() {
        let mut checks = 0;
        let mut runs = FaultCostRuns::default();
        assert_eq!(runs.cost(), None);
        runs.measure(|| checks += 1).unwrap();
        runs.measure(|| checks += 1).unwrap();
        assert_eq!((checks, runs.read.len()), (2 * (RUNS + 1), 2 * RUNS));
        let cost = runs.cost().unwrap();
        assert!(cost.of_base(1.0, 1.0) > 0.0 && cost.per_unmapped_page > 0.0, "{cost:?}");
        assert!((1.0..=512.0).contains(&cost.pages_per_read_fault), "{cost:?}");
    }

    #[test]
    fn a_long_observation_measures_ten_times() {
        let ago = |seconds| FaultCostRuns {
            measured: Instant::now().checked_sub(Duration::from_secs(seconds)),
            ..FaultCostRuns::default()
        };
        assert!(FaultCostRuns::default().is_due(Duration::ZERO));
        assert!(!ago(5).is_due(Duration::from_secs(1)) && ago(11).is_due(Duration::from_secs(1)));
        assert!(!ago(50).is_due(Duration::from_secs(600)) && ago(61).is_due(Duration::from_secs(600)));
    }

    #[test]
    fn half_of_the_runs_take_at_least_the_median() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 90.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 90.0, 2.0]), Some(3.0));
    }

    /// A child begins without page tables of shared memory, whatever the postmaster has touched, as at the start of a
    /// session.
    #[test]
    fn a_fork_copies_no_page_tables_of_shared_memory() {
        let memory = SharedMapping::new(64 << 20).unwrap();
        memory.write_each(4096);
        // SAFETY: the child only waits until it is killed, a minute if this test fails.
        #[allow(unsafe_code)]
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                loop {
                    libc::pause();
                }
            }
            child
        };
        assert!(child > 0);
        let tables = |pid: i32| {
            hugepage_kernel::proc::process::status(&hugepage_kernel::Root::live(), pid)
                .unwrap()
                .unwrap()
                .page_tables
                .unwrap()
        };
        let (own, its) = (tables(std::process::id().cast_signed()), tables(child));
        // SAFETY: the child has not been waited for, so it is still this one.
        #[allow(unsafe_code)]
        let ended =
            unsafe { libc::kill(child, libc::SIGKILL) == 0 && libc::waitpid(child, ptr::null_mut(), 0) == child };
        assert!(ended);
        // 8 bytes for each page of 4 kB; other tests may grow this process meanwhile.
        assert!(own.0 >= its.0 + (64 << 20) / 512 * 9 / 10, "{own} and {its}");
    }

    /// A session finds the pages that another one has filled.
    #[test]
    fn the_second_mapping_shows_the_same_memory() {
        let memory = SharedMapping::new(8192).unwrap();
        memory.write_each(4096);
        let again = memory.map_again().unwrap();
        assert_ne!(again.start, memory.start);
        // SAFETY: a byte within the mapping.
        #[allow(unsafe_code)]
        let byte = unsafe { again.start.as_ptr().cast::<u8>().add(4096).read_volatile() };
        assert_eq!(byte, 1);
    }
}
