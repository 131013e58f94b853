//! Memory of this library. Rust ends the process where it gets none, and the end of one backend restarts the whole server.
//! So each entry point runs in [`with_reserve`], which maps a reserve first, or raises the server's own "out of memory";
//! while it runs, whatever malloc(3) refuses comes from there.
//!
//! The reserve is mapped and never touched unless it is needed. It counts for `ulimit -v` and `vm.overcommit_memory = 2`,
//! so that nothing else takes what a call was promised.
//!
//! A call ends by unmapping it. Rows are the server's memory by then. What else may outlive a call is an error on its way
//! to the server, where cgroups are mounted, the columns of a view, a comparison of the configuration, a problem that was
//! logged, and the last start, which the postmaster keeps. If one of these lies in the reserve, the reserve stays, and the
//! calls of this process have what is left of it until all was given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pgrx::prelude::*;

/// The most expensive entry point had 286 kB at once with 500 sessions; this is enough for some thousands.
pub const USUAL: usize = 8 << 20;

#[global_allocator]
static ALLOCATOR: MallocOrReserve = MallocOrReserve;

/// The reserve of the running call.
static CALL_RESERVE: Arena = Arena::empty();
/// The reserve of code outside of a call, which only raises the error that there is no reserve.
static STATIC_RESERVE: Arena = Arena::empty();
static STATIC_RESERVE_BYTES: StaticBytes = StaticBytes(UnsafeCell::new([0; 256 << 10]));

#[repr(align(4096))]
struct StaticBytes(UnsafeCell<[u8; 256 << 10]>);

// SAFETY: only STATIC_RESERVE gives parts of it away, each once.
#[allow(unsafe_code)]
unsafe impl Sync for StaticBytes {}

/// A range of memory that is given away from its start to its end, and as a whole again once all of it was given back.
/// Processes of the server have one thread; the atomics only satisfy the compiler.
struct Arena {
    start: AtomicUsize,
    size: AtomicUsize,
    used: AtomicUsize,
    live: AtomicUsize,
}

impl Arena {
    const fn empty() -> Self {
        Self {
            start: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
        }
    }

    /// Sets the range that the arena gives away from now on.
    fn give(&self, start: usize, size: usize) {
        self.used.store(0, Relaxed);
        self.size.store(size, Relaxed);
        self.start.store(start, Relaxed);
    }

    fn is_mapped(&self) -> bool {
        self.start.load(Relaxed) != 0
    }

    fn allocate(&self, layout: Layout) -> *mut u8 {
        let start = self.start.load(Relaxed);
        let from = (start + self.used.load(Relaxed)).next_multiple_of(layout.align());
        let used = from.saturating_add(layout.size()).saturating_sub(start);
        if start == 0 || used > self.size.load(Relaxed) {
            return ptr::null_mut();
        }
        self.used.store(used, Relaxed);
        self.live.fetch_add(1, Relaxed);
        ptr::with_exposed_provenance_mut(from)
    }

    fn owns(&self, pointer: *mut u8) -> bool {
        let start = self.start.load(Relaxed);
        start != 0 && pointer.addr().wrapping_sub(start) < self.size.load(Relaxed)
    }

    fn give_back(&self) {
        if self.live.fetch_sub(1, Relaxed) == 1 {
            self.used.store(0, Relaxed);
        }
    }

    fn left(&self) -> usize {
        self.size.load(Relaxed) - self.used.load(Relaxed)
    }
}

/// malloc(3), and the reserves where that fails.
struct MallocOrReserve;

impl MallocOrReserve {
    fn from_reserve(layout: Layout) -> *mut u8 {
        if !STATIC_RESERVE.is_mapped() {
            STATIC_RESERVE.give(
                STATIC_RESERVE_BYTES.0.get().expose_provenance(),
                size_of::<StaticBytes>(),
            );
        }
        let of_call = CALL_RESERVE.allocate(layout);
        if of_call.is_null() {
            STATIC_RESERVE.allocate(layout)
        } else {
            of_call
        }
    }

    fn owner(pointer: *mut u8) -> Option<&'static Arena> {
        [&CALL_RESERVE, &STATIC_RESERVE]
            .into_iter()
            .find(|arena| arena.owns(pointer))
    }
}

// SAFETY: what comes from malloc(3) goes back there, what comes from an arena is aligned, and its own until given back.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for MallocOrReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() {
            Self::from_reserve(layout)
        } else {
            found
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match Self::owner(pointer) {
            Some(arena) => arena.give_back(),
            // SAFETY: as the caller promises.
            None => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let owner = Self::owner(pointer);
        if owner.is_none() {
            // SAFETY: as the caller promises.
            let found = unsafe { System.realloc(pointer, layout, size) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: the new size is valid, as the caller promises; both blocks hold the smaller of the two sizes.
        unsafe {
            let found = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !found.is_null() {
                ptr::copy_nonoverlapping(pointer, found, size.min(layout.size()));
                self.dealloc(pointer, layout);
            }
            found
        }
    }
}

/// The reserve of memory of a call; given back on drop, unless something of the call is still in it.
struct Reserve(());

impl Reserve {
    /// Takes `size` bytes, or what an earlier call has left of as many; `None` if there is too little.
    fn take(size: usize) -> Option<Self> {
        if !CALL_RESERVE.is_mapped() {
            CALL_RESERVE.give(map(size)?, size);
        }
        (CALL_RESERVE.left() >= size / 2).then_some(Self(()))
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if CALL_RESERVE.live.load(Relaxed) == 0 {
            unmap(
                CALL_RESERVE.start.swap(0, Relaxed),
                CALL_RESERVE.size.load(Relaxed),
            );
        }
    }
}

/// Runs the `body` of an entry point with a reserve of `size` bytes. Without that much memory the body does not begin, and
/// the error is the one that a statement gets from the server.
pub fn with_reserve<T>(size: usize, body: impl FnOnce() -> T) -> T {
    let Some(_reserve) = Reserve::take(size) else {
        out_of_memory(format!(
            "The extension asks for {size} bytes of memory before it reads anything."
        ));
    };
    body()
}

/// Raises the error of [`with_reserve`] once the call has used half of its reserve. For a loop over a file that may be long.
pub fn check_reserve() {
    if CALL_RESERVE.left() < CALL_RESERVE.size.load(Relaxed) / 2 {
        out_of_memory("The extension has used half of its reserve of memory.".to_owned());
    }
}

fn out_of_memory(detail: String) -> ! {
    ereport!(
        ERROR,
        PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
        "out of memory",
        detail
    );
}

/// The address of `size` new bytes, which the kernel backs with memory once they are touched.
#[allow(unsafe_code)]
fn map(size: usize) -> Option<usize> {
    let (access, how) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(ptr::null_mut(), size, access, how, -1, 0) };
    (start != libc::MAP_FAILED).then(|| start.expose_provenance())
}

#[allow(unsafe_code)]
fn unmap(start: usize, size: usize) {
    // SAFETY: what `map` returned, and nothing refers to it any more.
    unsafe {
        libc::munmap(ptr::with_exposed_provenance_mut(start), size);
    }
}
