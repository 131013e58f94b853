//! The kernel's files that a backend keeps open between two questions, and the server's count of such descriptors.

use std::sync::Arc;

use hugepage_core::read::Root;
use hugepage_core::read::kept_files::KeptFiles;
use pgrx::pg_sys;

thread_local! {
    /// Of this backend, which never forks without exec.
    static KEPT: Arc<KeptFiles> = KeptFiles::new(acquire, release);
}

/// The running machine, with the files that this backend keeps open. Not for the postmaster: its children would inherit
/// what is open, and /proc/self with it.
pub fn root() -> Root {
    KEPT.with(Root::keeping)
}

/// The server counts descriptors that are not its own (fd.c), and refuses some when they become scarce.
#[allow(unsafe_code)]
fn acquire() -> bool {
    // SAFETY: changes a counter of this process.
    unsafe { pg_sys::AcquireExternalFD() }
}

#[allow(unsafe_code)]
fn release() {
    // SAFETY: as above.
    unsafe { pg_sys::ReleaseExternalFD() }
}
