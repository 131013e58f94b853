//! Memory of this library. Rust ends the process where it gets none, and the end of one backend restarts the whole server.
//! So the body of each entry point runs in [`with_reserve`], which takes a reserve first, or raises the server's own "out of memory"; while it runs, whatever
//! malloc(3) refuses comes from there.
//!
//! The reserve is mapped and never touched unless it is needed. It counts for `ulimit -v` and `vm.overcommit_memory = 2`,
//! so that nothing else takes what a call was promised.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pgrx::prelude::*;

/// The most expensive entry point had 286 kB at once with 500 sessions; this is enough for some thousands.
pub const USUAL: usize = 8 << 20;
/// How much of the stack a call may use; the kernel ends a process whose stack it can't extend.
const STACK: usize = 128 << 10;
/// What the stack is extended by: half as much again, for the next call from a deeper place.
const EXTENDED_STACK: usize = STACK / 2 * 3;

#[global_allocator]
static ALLOCATOR: MallocOrReserve = MallocOrReserve;

/// Reserves of calls: that of the running one, and earlier ones in which something still lives, such as a kept answer.
static OF_CALLS: [Arena; 4] = [const { Arena::empty() }; 4];
/// The index of the first.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// For what has no call: the error that there is no reserve, and rows that the server fetches later.
static ALWAYS: Arena = Arena::empty();
static ALWAYS_BYTES: StaticBytes = StaticBytes(UnsafeCell::new([0; 256 << 10]));

#[repr(align(4096))]
struct StaticBytes(UnsafeCell<[u8; 256 << 10]>);

// SAFETY: only ALWAYS gives parts of it away, each once.
#[allow(unsafe_code)]
unsafe impl Sync for StaticBytes {}

/// Memory that is given away from its start to its end, and as a whole again once all of it was given back. Processes
/// of the server have one thread; the atomics only satisfy the compiler.
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

    /// The memory that it gives away from now on.
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
        if !ALWAYS.is_mapped() {
            ALWAYS.give(ALWAYS_BYTES.0.get().expose_provenance(), size_of::<StaticBytes>());
        }
        let current = &OF_CALLS[CURRENT.load(Relaxed) % OF_CALLS.len()];
        [current, &ALWAYS]
            .into_iter()
            .map(|arena| arena.allocate(layout))
            .find(|found| !found.is_null())
            .unwrap_or_default()
    }

    fn owner(pointer: *mut u8) -> Option<&'static Arena> {
        OF_CALLS.iter().chain([&ALWAYS]).find(|arena| arena.owns(pointer))
    }
}

// SAFETY: what comes from malloc(3) goes back there, what comes from an arena is aligned, and its own until given back.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for MallocOrReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() { Self::from_reserve(layout) } else { found }
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

/// What a call does not get.
struct Missing {
    bytes: usize,
    of: &'static str,
}

/// Memory that is there for a call; given back on drop, unless something of the call is still in it.
struct Reserve(());

impl Reserve {
    /// Takes `size` bytes, and the stack that a call may need; the error is what there is too little of.
    fn take(size: usize) -> Result<Self, Missing> {
        if !has_stack() {
            return Err(Missing { bytes: EXTENDED_STACK, of: "stack" });
        }
        let missing = || Missing { bytes: size, of: "memory" };
        let has_room = |arena: &Arena| arena.is_mapped() && arena.left() >= size / 2;
        let current = match OF_CALLS.iter().position(has_room) {
            Some(earlier) => earlier,
            None => {
                let free = OF_CALLS.iter().position(|arena| !arena.is_mapped()).ok_or_else(missing)?;
                OF_CALLS[free].give(map(size).ok_or_else(missing)?, size);
                free
            }
        };
        CURRENT.store(current, Relaxed);
        Ok(Self(()))
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        for arena in OF_CALLS.iter().filter(|arena| arena.is_mapped() && arena.live.load(Relaxed) == 0) {
            unmap(arena.start.swap(0, Relaxed), arena.size.load(Relaxed));
        }
    }
}

/// Runs the `body` of an entry point with a reserve of `size` bytes. Without that much memory the body does not begin, and
/// the error is the one that a statement gets from the server.
pub fn with_reserve<T>(size: usize, body: impl FnOnce() -> T) -> T {
    let _reserve = match Reserve::take(size) {
        Ok(reserve) => reserve,
        Err(Missing { bytes, of }) => {
            ereport!(
                ERROR,
                PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
                "out of memory",
                format!("pg_hugepages asks for {bytes} bytes of {of} before it reads anything.")
            );
        }
    };
    body()
}

/// The address of `size` new bytes, which the kernel backs with memory once they are touched.
#[allow(unsafe_code)]
fn map(size: usize) -> Option<usize> {
    let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
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

/// The lowest address of the stack that was touched for a call. A stack does not become smaller, and a child of fork(2)
/// inherits it.
static LOWEST_OF_STACK: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether the stack is as deep as a call may need it, from an earlier call or extended now; false if the kernel does not give
/// that much. To touch it would end the process then, and whatever shows beforehand that there is enough may be another process's
/// a moment later. A system call that writes there only fails.
#[allow(unsafe_code)]
fn has_stack() -> bool {
    let here = 0_u8;
    let here = std::hint::black_box(&raw const here).expose_provenance();
    if LOWEST_OF_STACK.load(Relaxed) <= here.saturating_sub(STACK) {
        return true;
    }
    let deep = here.saturating_sub(EXTENDED_STACK).next_multiple_of(align_of::<libc::timespec>());
    // By number: the C library's function writes by itself.
    // SAFETY: nothing lies below the stack's end, where the kernel writes.
    let result = unsafe {
        let time = ptr::with_exposed_provenance_mut::<libc::timespec>(deep);
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, time)
    };
    if result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
        return false;
    }
    LOWEST_OF_STACK.store(deep, Relaxed);
    true
}
