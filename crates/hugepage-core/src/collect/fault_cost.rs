//! Measures what page faults on shared memory cost, in memory of this process.
//!
//! It maps shared memory as a server does, fills it, and maps the same memory again as a new session does: the pages are
//! there, the page tables are not. It takes no page of a pool: a server that starts at that moment might lack it.

use std::io;
use std::ptr::{self, NonNull};

use crate::model::FaultCost;
use crate::{Bytes, PageSize};

/// Large enough that the kernel's own data about these pages does not stay in the fastest caches.
const SIZE: Bytes = Bytes(16 << 20);
/// Each run is repeated, and the fastest counts: other processes only make it slower.
const RUNS: usize = 5;

/// Measures for some 40 ms of CPU time, with 16 MB of memory. `check` is called between the runs.
pub fn measure(mut check: impl FnMut()) -> io::Result<FaultCost> {
    let base = PageSize::base();
    let pages = usize::try_from(base.pages_to_hold(SIZE).0).unwrap_or(usize::MAX);
    let page = usize::try_from(base.bytes().0).unwrap_or(usize::MAX);
    let memory = SharedMapping::new(pages * page)?;
    memory.write_each(page);
    let (mut read, mut write, mut unmap, mut faults) = ([0.0; RUNS], [0.0; RUNS], [0.0; RUNS], [0.0; RUNS]);
    for run in 0..RUNS {
        check();
        let begun = ThreadUsage::now()?;
        let again = memory.again()?;
        again.read_each(page);
        let mapped = ThreadUsage::now()?;
        drop(again);
        let unmapped = ThreadUsage::now()?;
        let again = memory.again()?;
        again.write_each(page);
        let written = ThreadUsage::now()?;
        (read[run], faults[run]) = (mapped.seconds - begun.seconds, mapped.faults - begun.faults);
        (unmap[run], write[run]) = (unmapped.seconds - mapped.seconds, written.seconds - unmapped.seconds);
    }
    #[allow(clippy::cast_precision_loss)]
    let pages = pages as f64;
    Ok(FaultCost::of_runs(pages, least(faults), least(read), least(write), least(unmap)))
}

fn least(values: [f64; RUNS]) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

/// What this thread has used so far.
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

    /// A second mapping of the same memory: mremap(2) makes one if the old size is zero.
    fn again(&self) -> io::Result<Self> {
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
        let cost = measure(|| checks += 1).unwrap();
        assert_eq!(checks, RUNS);
        assert!(cost.of_base(1.0, 1.0) > 0.0 && cost.per_unmapped_page > 0.0, "{cost:?}");
        assert!((1.0..=512.0).contains(&cost.pages_per_read_fault), "{cost:?}");
    }

    /// As at the start of a session: whatever the postmaster has touched, its child begins without these page tables.
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
            crate::read::process::status(&crate::read::Root::live(), pid).unwrap().unwrap().page_tables.unwrap()
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
        let again = memory.again().unwrap();
        assert_ne!(again.start, memory.start);
        // SAFETY: a byte within the mapping.
        #[allow(unsafe_code)]
        let byte = unsafe { again.start.as_ptr().cast::<u8>().add(4096).read_volatile() };
        assert_eq!(byte, 1);
    }
}
