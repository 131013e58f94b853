//! The NUMA nodes of pages: move_pages(2) without target nodes, which only asks. It moves nothing, and a page that the
//! process has not mapped stays so. The kernel takes the process's mmap lock for a few pages at a time.

use std::io;

/// As many addresses as are asked for at once, so that a caller can check for a cancel request between two calls.
pub const AT_ONCE: usize = 1 << 12;

/// The node of the page at each of at most [`AT_ONCE`] `addresses` of the process `pid`, 0 for this one. `None` for a
/// page that this process has not mapped, even if another process has; before Linux 6.1 also for a page of 1 GB
/// (mm/migrate.c, `do_pages_stat_array`).
pub fn nodes_of_pages(pid: i32, addresses: &[u64]) -> io::Result<Vec<Option<u32>>> {
    let addresses = &addresses[..addresses.len().min(AT_ONCE)];
    let mut status = vec![0 as libc::c_int; addresses.len()];
    // SAFETY: the kernel reads as many addresses as it writes numbers, and touches no page of theirs.
    #[allow(unsafe_code)]
    let result = unsafe {
        let none = 0usize;
        let from = addresses.as_ptr();
        let to = status.as_mut_ptr();
        libc::syscall(
            libc::SYS_move_pages,
            pid,
            addresses.len(),
            from,
            none,
            to,
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // A negative number is the reason why there is none.
    Ok(status
        .into_iter()
        .map(|node| u32::try_from(node).ok())
        .collect())
}
