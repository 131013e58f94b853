//! Facts from this PostgreSQL server's own variables.

#![expect(unsafe_code, reason = "they are C's")]

use std::cell::RefCell;
use std::env;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use hugepage_assess::model::{HugePages, Product, Requested};
use hugepage_kernel::cgroups::cgroup::Hierarchy;
use hugepage_kernel::host::local_path::LocalPaths;
use hugepage_kernel::mapping::maps::Mapping;
use hugepage_kernel::mapping::own_mapping;
use hugepage_kernel::postgresql::pg_control::RecoveryParameters;
use hugepage_kernel::proc::process;
use hugepage_kernel::{Bytes, Notes, PageSize, ROOT, ReadError};
use hugepage_server::CgroupView;
use pgrx::pg_sys;
use rustix::time::{ClockId, clock_gettime};

use crate::guc;

thread_local! {
    /// The cgroup hierarchy, kept once it was found: mounts seldom change, and reading them costs more than all else.
    static HIERARCHY: RefCell<Option<Option<Hierarchy>>> = const { RefCell::new(None) };
}

/// The pages and memory that the settings of the running server ask for (storage/pg_shmem.h, storage/bufmgr.h).
pub fn requested_memory() -> Requested {
    // SAFETY: these are set before the first backend exists and never after.
    let (huge_pages, page_size_kb, shmem_type, buffers) = unsafe {
        (
            pg_sys::huge_pages,
            pg_sys::huge_page_size,
            pg_sys::shared_memory_type,
            pg_sys::NBuffers,
        )
    };
    Requested {
        huge_pages: match huge_pages.unsigned_abs() {
            pg_sys::HugePagesType::HUGE_PAGES_OFF => HugePages::Off,
            pg_sys::HugePagesType::HUGE_PAGES_ON => HugePages::On,
            _ => HugePages::Try,
        },
        huge_page_size: u64::try_from(page_size_kb)
            .ok()
            .and_then(PageSize::from_kib),
        product: Product::PostgreSql,
        sysv: shmem_type.unsigned_abs() == pg_sys::PGShmemType::SHMEM_TYPE_SYSV,
        shared_buffers: Bytes(u64::from(buffers.unsigned_abs()) * u64::from(pg_sys::BLCKSZ)),
        io_uring: guc::running(c"io_method").is_some_and(|method| method == "io_uring"),
    }
}

/// Tells which files a look at waits for nobody, besides those of the data directory, in which this process works.
pub fn local_paths() -> Result<LocalPaths, String> {
    let working = ROOT
        .read_link("/proc/self/cwd")
        .map_or_else(|_| data_directory(), PathBuf::from);
    LocalPaths::new(&ROOT, &working)
}

/// The major version that this library was built for.
pub fn major() -> u32 {
    u32::from(pg_sys::get_pg_major_version_num())
}

/// `max_connections`.
pub fn max_connections() -> u64 {
    // SAFETY: set before the first backend exists and never after.
    u64::from(unsafe { pg_sys::MaxConnections }.unsigned_abs())
}

/// The settings of this server that a standby compares with its primary's.
pub fn recovery_parameters() -> RecoveryParameters {
    // SAFETY: these are set before the first backend exists and never after.
    unsafe {
        RecoveryParameters {
            hot_standby: pg_sys::EnableHotStandby,
            max_connections: pg_sys::MaxConnections,
            max_worker_processes: pg_sys::max_worker_processes,
            max_wal_senders: pg_sys::max_wal_senders,
            max_prepared_transactions: pg_sys::max_prepared_xacts,
            max_locks_per_transaction: pg_sys::max_locks_per_xact,
        }
    }
}

/// `data_directory`, absolute.
pub fn data_directory() -> PathBuf {
    // SAFETY: set before the first backend exists and never after.
    unsafe { guc::path(pg_sys::DataDir) }
}

/// The server's error for the owner or the mode of its data directory (miscinit.c, `checkDataDir`); `None` if a start takes them.
#[expect(clippy::disallowed_methods, reason = "this process works in it")]
pub fn refusal_of_data_directory() -> Option<String> {
    const OF_OTHERS: u32 = 0o027;
    let path = data_directory();
    let found = std::fs::metadata(&path).ok()?;
    // SAFETY: no pointer.
    let what = if found.uid() != unsafe { libc::geteuid() } {
        "wrong ownership"
    } else if found.mode() & OF_OTHERS != 0 {
        "invalid permissions"
    } else {
        return None;
    };
    Some(format!("data directory \"{}\" has {what}", path.display()))
}

/// `config_file`, absolute.
pub fn config_file() -> PathBuf {
    // SAFETY: set before the first backend exists and never after.
    unsafe { guc::path(pg_sys::ConfigFileName) }
}

/// The path of the server's program, absolute.
pub fn executable() -> PathBuf {
    // SAFETY: an array whose length bindgen does not know, with a text that ends in a zero byte.
    unsafe { guc::path(std::ptr::addr_of!(pg_sys::my_exec_path).cast()) }
}

/// The directory of the server's libraries (`pkglibdir`).
pub fn library_directory() -> PathBuf {
    // SAFETY: as above.
    unsafe { guc::path(std::ptr::addr_of!(pg_sys::pkglib_path).cast()) }
}

/// The postmaster's process id.
pub fn postmaster_pid() -> i32 {
    // SAFETY: set by the postmaster before it starts any process.
    unsafe { pg_sys::PostmasterPid }
}

/// The start of the postmaster, in microseconds since 2000, by the clock that shows `now`; `None` if it is unknown. It stays right
/// where that clock is set.
pub fn postmaster_start(now: pg_sys::TimestampTz) -> Option<pg_sys::TimestampTz> {
    let pid = postmaster_in_proc()?.parse().ok()?;
    let started = process::stat(&ROOT, pid).ok().flatten()?.start_after_boot();
    let since_boot = clock_gettime(ClockId::Boottime);
    let since_boot = since_boot.tv_sec * 1_000_000 + since_boot.tv_nsec / 1000;
    let started = i64::try_from(started.as_micros())
        .ok()
        .filter(|started| *started > 0)?;
    Some(now - (since_boot - started))
}

/// The process id of this process.
pub fn own_pid() -> i32 {
    // SAFETY: set when the process starts.
    unsafe { pg_sys::MyProcPid }
}

/// Whether /proc shows this process's namespace of processes, and so no other numbers.
pub fn has_own_proc() -> Result<bool, ReadError> {
    Ok(process::own_pid(&ROOT)? == own_pid())
}

/// The postmaster's name below /proc; `None` if /proc shows another namespace of processes.
pub fn postmaster_in_proc() -> Option<String> {
    has_own_proc()
        .is_ok_and(|is_own| is_own)
        .then(|| postmaster_pid().to_string())
}

/// An address in the main segment: the first buffer. Zero in a process without shared memory.
pub fn address_in_main() -> u64 {
    // SAFETY: the pointer is read, not dereferenced.
    unsafe { pg_sys::BufferBlocks as u64 }
}

/// An address in the System V segment that prevents two postmasters in one data directory (sysv_shmem.c).
pub fn address_in_interlock() -> u64 {
    // SAFETY: the pointer is read, not dereferenced.
    unsafe { pg_sys::UsedShmemSegAddr as u64 }
}

/// The mapping that holds the first buffer; `None` and a note if it could not be determined.
pub fn main_mapping(notes: &mut Notes) -> Option<Mapping> {
    let mapping = notes
        .keep(own_mapping::at(&ROOT, address_in_main()))
        .flatten();
    if mapping.is_none() {
        notes.add("no mapping of this process holds the buffer pool");
    }
    mapping
}

/// Forgets the cgroup hierarchy. For the postmaster, whose children inherit what it has found.
pub fn forget_hierarchy() {
    HIERARCHY.set(None);
}

/// Calls `use_it` with the hugetlb hierarchy of cgroups; without it and with a note if it could not be read.
pub fn with_hierarchy<T>(
    notes: &mut Notes,
    use_it: impl FnOnce(CgroupView<'_>, &mut Notes) -> T,
) -> T {
    if HIERARCHY.with_borrow(Option::is_none) {
        // The postmaster maps the segment, so its cgroup counts and not that of the session.
        let process = postmaster_in_proc().unwrap_or_else(|| "self".to_owned());
        let mut found = notes.keep(Hierarchy::find_of(&ROOT, &process));
        if let Some(Some(hierarchy)) = &mut found {
            // The kubelet gives it to every container.
            hierarchy.is_of_pod |= env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        }
        HIERARCHY.set(found);
    }
    HIERARCHY.with_borrow(|known| use_it(known.as_ref(), notes))
}
