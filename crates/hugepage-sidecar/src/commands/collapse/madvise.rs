//! `process_madvise(2)` with `MADV_COLLAPSE`, and a probe of it on memory of this process.
//!
//! What the kernel does was read in its sources (mm/khugepaged.c, mm/madvise.c, mm/shmem.c). `collapse_file` allocates and charges the
//! huge page with no lock on the memory (`GFP_TRANSHUGE`: it reclaims and compacts, but is too large to call the OOM killer). Then it locks
//! each old page and unmaps it from all processes: a session that touches one of them waits in its page fault until the range is done. The
//! mmap lock is taken for reading, and for a moment only, so a fork waits at most for the walk of page tables of one range. A range goes
//! to the node with most of its pages, within the caller's cpuset, which is why that has to be the server's. After a crash restart the
//! kernel may find nothing at the address, or memory of the same server. Swap splits such pages silently.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, Root};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

/// Since 6.1 (asm-generic/mman-common.h).
const MADV_COLLAPSE: libc::c_int = 25;
/// The ranges of the probe.
const PROBED: usize = 8;

/// Makes one huge page of `size` bytes at `start` in the process of `pidfd`; an error number if not.
#[allow(unsafe_code)]
pub fn collapse(pidfd: BorrowedFd<'_>, start: u64, size: usize) -> Result<(), i32> {
    let range = libc::iovec {
        iov_base: ptr::without_provenance_mut(usize::try_from(start).map_err(|_| libc::EINVAL)?),
        iov_len: size,
    };
    // SAFETY: the kernel reads one iovec, and changes how memory is mapped, but not what is in it.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            pidfd.as_raw_fd(),
            &raw const range,
            1usize,
            MADV_COLLAPSE,
            0u32,
        )
    };
    match usize::try_from(done) {
        Ok(done) if done == size => Ok(()),
        Ok(_) => Err(libc::EINVAL),
        Err(_) => Err(io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL)),
    }
}

/// What the probe takes at most, with ranges of `size` bytes.
pub const fn probe_takes(size: usize) -> Bytes {
    Bytes(((PROBED + 1) * size) as u64)
}

/// Whether this kernel frees the page tables of all mappings of a range, and not only those of the process that is asked. The error is
/// that of a kernel that collapses nothing.
pub fn frees_all_tables(root: &Root, size: usize) -> io::Result<bool> {
    let tables = || -> io::Result<u64> {
        let status = process::status(root, getpid().as_raw_pid()).map_err(io::Error::other)?;
        let tables = status.and_then(|status| status.page_tables);
        tables
            .map(|tables| tables.0)
            .ok_or_else(|| io::Error::other("VmPTE is unknown"))
    };
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty())?;
    let memory = TwiceMapped::new(size)?;
    let before = tables()?;
    for range in 0..PROBED {
        collapse(
            std::os::fd::AsFd::as_fd(&pidfd),
            memory.first + (range * size) as u64,
            size,
        )
        .map_err(io::Error::from_raw_os_error)?;
    }
    let freed = before.saturating_sub(tables()?);
    // One table for each range and mapping. This process may need another one meanwhile.
    let one = 4096 * PROBED as u64;
    Ok(freed > one + one / 2)
}

/// Shared memory of [`PROBED`] ranges that is mapped twice and was touched in both places.
struct TwiceMapped {
    first: u64,
    reserved: (*mut libc::c_void, usize),
}

impl TwiceMapped {
    #[allow(unsafe_code)]
    fn new(size: usize) -> io::Result<Self> {
        let length = PROBED * size;
        let whole = 2 * length + size;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an unused range is reserved, and both mappings are made within it, at multiples of `size`.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), whole, libc::PROT_NONE, private, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            // It is unmapped by drop from here on.
            let first = start.map_addr(|address| address.next_multiple_of(size));
            let memory = Self {
                first: first.expose_provenance() as u64,
                reserved: (start, whole),
            };
            if libc::mmap(first, length, rights, shared, -1, 0) == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            // Without a length mremap(2) maps shared memory a second time.
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            let second = libc::mremap(first, 0, length, how, first.byte_add(length));
            if second == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            for place in [first, second] {
                for at in (0..length).step_by(4096) {
                    place.cast::<u8>().byte_add(at).write_volatile(1);
                }
            }
            Ok(memory)
        }
    }
}

impl Drop for TwiceMapped {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        let (start, length) = self.reserved;
        // SAFETY: nothing refers to the memory any more.
        unsafe {
            libc::munmap(start, length);
        }
    }
}
