//! What this PostgreSQL server knows of itself. The only place that reads the server's variables.

use std::cell::{OnceCell, RefCell};
use std::ffi::c_int;

use hugepage_core::assess::{Asked, Facts, HugePages, Status};
use hugepage_core::notes::Notes;
use hugepage_core::read::cgroup::Hierarchy;
use hugepage_core::read::maps::Mapping;
use hugepage_core::read::{Root, maps, procmap_query};
use hugepage_core::survey::{self, CgroupView};
use hugepage_core::{Bytes, PageSize};
use pgrx::pg_sys;

use crate::{settings, startup};

thread_local! {
    /// Mounts stay as they are for the life of a backend, and reading them costs more than all the rest.
    static HIERARCHY: OnceCell<Result<Option<Hierarchy>, String>> = const { OnceCell::new() };
    /// The main segment is inherited from the postmaster and never moves in the life of a backend, so on kernels
    /// where only the text tells of it, it is read once.
    static MAIN_BY_TEXT: RefCell<Option<Mapping>> = const { RefCell::new(None) };
}

/// What the settings of the running server ask of the kernel (storage/pg_shmem.h, storage/bufmgr.h).
#[allow(unsafe_code)]
pub fn asked() -> Asked {
    // SAFETY: these are set before the first backend exists and never after.
    let (huge_pages, page_size_kb, shmem_type, buffers) =
        unsafe { (pg_sys::huge_pages, pg_sys::huge_page_size, pg_sys::shared_memory_type, pg_sys::NBuffers) };
    let is = |value: c_int, constant: u32| u32::try_from(value) == Ok(constant);
    Asked {
        huge_pages: match huge_pages {
            value if is(value, pg_sys::HugePagesType::HUGE_PAGES_OFF) => HugePages::Off,
            value if is(value, pg_sys::HugePagesType::HUGE_PAGES_ON) => HugePages::On,
            _ => HugePages::Try,
        },
        huge_page_size: u64::try_from(page_size_kb).ok().and_then(PageSize::from_kib),
        sysv: is(shmem_type, pg_sys::PGShmemType::SHMEM_TYPE_SYSV),
        shared_buffers: Bytes(u64::from(buffers.unsigned_abs()) * u64::from(pg_sys::BLCKSZ)),
    }
}

/// `max_connections`.
#[allow(unsafe_code)]
pub fn max_connections() -> u64 {
    // SAFETY: set before the first backend exists and never after.
    u64::from(unsafe { pg_sys::MaxConnections }.unsigned_abs())
}

/// An address in the main segment: the first buffer. Zero in a process without shared memory.
#[allow(unsafe_code)]
pub fn address_in_main() -> u64 {
    // SAFETY: the pointer is only read, never followed.
    unsafe { pg_sys::BufferBlocks as u64 }
}

/// An address in the System V segment that keeps two postmasters from one data directory (sysv_shmem.c).
#[allow(unsafe_code)]
pub fn address_in_interlock() -> u64 {
    // SAFETY: the pointer is only read, never followed.
    unsafe { pg_sys::UsedShmemSegAddr as u64 }
}

/// The mapping that holds the first buffer; `None` and a note if the kernel does not tell.
pub fn main_mapping(root: &Root, notes: &mut Notes) -> Option<Mapping> {
    let address = address_in_main();
    let mapping = match procmap_query::holding(root, address) {
        Some(answer) => notes.keep(answer).flatten(),
        None => MAIN_BY_TEXT.with_borrow_mut(|known| {
            if known.is_none() {
                *known = notes.keep(maps::holding_by_text(root, address)).flatten();
            }
            known.clone()
        }),
    };
    if mapping.is_none() {
        notes.add("no mapping of this process holds the buffer pool");
    }
    mapping
}

/// For the postmaster, which maps the segment anew after a crash.
pub fn forget_main_mapping() {
    MAIN_BY_TEXT.set(None);
}

/// The assessment of this server, now.
pub fn assess(root: &Root, notes: &mut Notes) -> Status {
    let mapping = main_mapping(root, notes);
    let facts = with_hierarchy(root, notes, |view, notes| {
        survey::server::facts(root, asked(), mapping, view, settings::reserve_percent(), notes)
    });
    let start = startup::last();
    let loss = start.as_ref().and_then(|start| start.loss.clone());
    let cause = start.and_then(|start| start.cause);
    Status::of(Facts { loss, cause_at_start: cause, ..facts })
}

/// Calls `use_it` with the hugetlb hierarchy of cgroups, or without it and with a note on why.
pub fn with_hierarchy<T>(root: &Root, notes: &mut Notes, use_it: impl FnOnce(CgroupView<'_>, &mut Notes) -> T) -> T {
    HIERARCHY.with(|known| match known.get_or_init(|| Hierarchy::find(root).map_err(|error| error.to_string())) {
        Ok(hierarchy) => use_it(Some(hierarchy.as_ref()), notes),
        Err(error) => {
            notes.add(error.clone());
            use_it(None, notes)
        }
    })
}
