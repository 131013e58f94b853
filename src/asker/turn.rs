//! One asker at a time in a server. Sessions wait for each other by a lock of the server, and whoever asks has the turn in shared memory.
//!
//! - A session holds the lock while it asks, and who waits for it uses its answer if the question is the same. The lock's database is
//!   0, which all sessions share, and no SQL function takes its type. A cancel and lock_timeout end the wait as for a table; after
//!   an error the end of the transaction, or of the subtransaction, lets go of it.
//! - The turn goes from the session to its asker, which passes it on at its end, however long after the session's. The asker of the
//!   permanent worker takes it when it is free.
//! - In a library that is not preloaded this is memory that the server has to spare.

#![expect(unsafe_code, reason = "shared memory, and a lock of the server")]

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use pgrx::atomics::PgAtomic;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgSharedMemoryInitialization, pg_sys};

use super::{Overrides, PAUSE, Running};
use crate::found::SharedAnswer;
use crate::{latch, server};

/// What who has the turn leaves to the next.
#[derive(Clone, Copy, Default)]
pub struct LeftBehind {
    /// The last question of a session.
    pub question: Overrides,
    /// Its answer; `None` until there is one.
    pub answer: Option<SharedAnswer>,
    /// A child of an asker that did not end when it was killed, or 0, and the clock tick of its start (proc(5), `stat`).
    pub stuck_child: (i32, u64),
}

/// What the askers of a server share with each other and with sessions.
#[derive(Default)]
pub struct Turn {
    /// The process that has the turn, an asker or a session that starts one; 0 if none has.
    owner: AtomicI32,
    /// Read and written by who has the turn.
    left: UnsafeCell<LeftBehind>,
}

// SAFETY: atomics, and a value without a pointer that one process at a time uses.
unsafe impl PGRXSharedMemory for Turn {}

// SAFETY: the name is the extension's own, and ends in a zero byte. It has the version: where two are loaded, each has its own.
pub static TURN: PgAtomic<Turn> = unsafe {
    let name = concat!("pg_hugepages asker ", env!("CARGO_PKG_VERSION"), "\0");
    PgAtomic::new(CStr::from_bytes_with_nul_unchecked(name.as_bytes()))
};

thread_local! {
    /// The asker of this session.
    static ASKER: RefCell<Option<Running>> = RefCell::default();
}

fn turn() -> &'static Turn {
    static ATTACHED: OnceLock<()> = OnceLock::new();
    // SAFETY: it is found, or taken from what is to spare, under a lock of the server; an error where nothing is.
    ATTACHED.get_or_init(|| unsafe { TURN.on_shmem_startup(Turn::default()) });
    TURN.get()
}

/// Whether somebody has the turn.
pub fn is_taken() -> bool {
    turn().owner.load(Acquire) != 0
}

fn pass(from: i32, to: i32) -> bool {
    turn()
        .owner
        .compare_exchange(from, to, AcqRel, Acquire)
        .is_ok()
}

/// Takes the turn from this process, which has started the caller, unless it is gone. For 0: waits until nobody has it, and returns `false`
/// in an asker that has to end.
pub fn take(from: i32) -> bool {
    while !pass(from, server::own_pid()) {
        if from != 0 || latch::is_stopping() {
            return false;
        }
        latch::wait(None, PAUSE);
    }
    true
}

/// Passes the turn on, if this process has it.
pub fn pass_on() {
    pass(server::own_pid(), 0);
}

/// The turn of a session. On drop, or when the session ends, its asker is ended, too.
struct SessionTurn;

impl SessionTurn {
    fn take() -> Self {
        static AT_EXIT: OnceLock<()> = OnceLock::new();
        // SAFETY: a function of this library, which is never unloaded.
        AT_EXIT.get_or_init(|| unsafe {
            pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0));
        });
        take(0);
        Self
    }
}

impl Drop for SessionTurn {
    fn drop(&mut self) {
        if let Some(asker) = ASKER.take() {
            asker.end();
        }
        pass_on();
    }
}

#[pg_guard]
extern "C-unwind" fn at_exit(_code: c_int, _arg: pg_sys::Datum) {
    drop(SessionTurn);
}

/// Runs `work` in a session that has the turn.
#[expect(clippy::cast_possible_truncation, reason = "small constants")]
pub fn in_session<T>(work: impl FnOnce() -> T) -> T {
    let tag = pg_sys::LOCKTAG {
        locktag_field2: u32::from_be_bytes(*b"huge"),
        locktag_type: pg_sys::LockTagType::LOCKTAG_USERLOCK as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        ..Default::default()
    };
    let mode = pg_sys::ExclusiveLock.cast_signed();
    // SAFETY: in a transaction, with a local variable.
    unsafe { pg_sys::LockAcquire(&raw const tag, mode, false, false) };
    let own = SessionTurn::take();
    let result = work();
    drop(own);
    // SAFETY: as above.
    unsafe { pg_sys::LockRelease(&raw const tag, mode, false) };
    result
}

/// Waits in a session for the end of its asker.
pub fn await_end(asker: Running) {
    ASKER.set(Some(asker));
    while ASKER.with_borrow(|asker| asker.as_ref().is_some_and(|asker| !asker.has_ended())) {
        latch::wait(None, PAUSE);
    }
    ASKER.take();
}

/// What was left behind; for who has the turn.
pub fn left() -> LeftBehind {
    // SAFETY: as the type says.
    unsafe { *turn().left.get() }
}

/// Leaves something else behind; for who has the turn.
pub fn leave(change: impl FnOnce(&mut LeftBehind)) {
    // SAFETY: as the type says.
    change(unsafe { &mut *turn().left.get() });
}
