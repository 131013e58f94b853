//! What the processes of a preloaded server share: one struct under one lock, which a crash restart resets. Nothing is there in a
//! library that is not preloaded. [`Turn`](crate::asker::Turn), which also works without preloading, is apart.

use std::mem;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::Threat;
use hugepage_facts::TransparentPages;
use hugepage_kernel::PageSize;
use hugepage_kernel::next_boot::{BootLook, NextBoot, PoolAtBoot};
use pgrx::lwlock::PgLwLock;
use pgrx::{PGRXSharedMemory, pg_sys};

use crate::fixed::Few;
use crate::found::{Asked, Found, SharedAnswer, SharedBoot, SharedLook};
use crate::shmem::{self, system_time};

/// The time in which the server starts the worker.
const WORKER_START: Duration = Duration::from_secs(5);

/// All that the processes of a server share if the library is preloaded, under one lock.
#[derive(Clone, Copy, Default)]
pub struct Shared {
    /// Whether the message of the first start was repeated for the logging collector. Written once.
    startup_repeated: bool,
    /// The threats that were warned of, so that a new worker knows them. Written by the worker at each sample.
    warned_threats: Few<Threat, { Threat::ALL.len() }>,
    /// Whether the worker has begun. Written by it.
    has_worker: bool,
    /// The time of the worker's last question about a start, in microseconds since 2000; 0 if there was none.
    question_time: pg_sys::TimestampTz,
    /// The transparent huge pages of the main segment; `None` if the host has none. Written by the worker at each sample.
    transparent: Option<TransparentPages>,
    /// Written by the asker.
    found: Found,
}

// SAFETY: plain values without a pointer; the lock guards them.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for Shared {}

// SAFETY: the name is the extension's own.
#[allow(unsafe_code)]
pub static SHARED: PgLwLock<Shared> = unsafe { PgLwLock::new(c"pg_hugepages") };

/// Reads what is shared; `None` if the library is not preloaded, where the lock does not exist.
fn read<T>(read: impl FnOnce(&Shared) -> T) -> Option<T> {
    shmem::generation().map(|_| read(&SHARED.share()))
}

/// Changes what is shared, in a preloaded library.
fn change<T>(change: impl FnOnce(&mut Shared) -> T) -> Option<T> {
    shmem::generation().map(|_| change(&mut SHARED.exclusive()))
}

/// True once for a server whose first message went to the postmaster's standard error only, because the logging
/// collector starts after shared memory is allocated. The collector receives all later messages.
#[allow(unsafe_code)]
pub fn claim_startup_repeat() -> bool {
    // SAFETY: set when the server starts and never after.
    let collected = unsafe { pg_sys::Logging_collector };
    let is_first = collected && shmem::generation() == Some(1);
    is_first && change(|shared| !mem::replace(&mut shared.startup_repeated, true)) == Some(true)
}

/// The threats that were warned of and stand; none after an allocation.
pub fn warned_threats() -> Vec<Threat> {
    read(|shared| shared.warned_threats.iter().copied().collect()).unwrap_or_default()
}

/// Replaces the threats that were warned of; in the worker.
pub fn set_warned_threats(threats: &[Threat]) {
    change(|shared| shared.warned_threats = threats.iter().copied().collect());
}

/// What the worker has read of transparent huge pages; `None` if it has not, or found none on the host.
pub fn transparent() -> Option<TransparentPages> {
    read(|shared| shared.transparent)?
}

/// Replaces that; in the worker.
pub fn set_transparent(found: Option<TransparentPages>) {
    change(|shared| shared.transparent = found);
}

/// Records that the worker has begun; in the worker.
pub fn worker_begins() {
    change(|shared| shared.has_worker = true);
}

/// Whether the worker of a preloaded library has not begun, although the server has had the time to start it.
pub fn lacks_worker() -> bool {
    let is_late = shmem::since_allocation().is_none_or(|since| since > WORKER_START);
    is_late && read(|shared| !shared.has_worker) == Some(true)
}

/// Records that an asker was started for a question about a start; in the worker.
pub fn question_begins() {
    change(|shared| shared.question_time = shmem::now());
}

/// The time since the worker has asked about a start; `None` if it never has.
pub fn since_last_question() -> Option<Duration> {
    shmem::since(read(|shared| shared.question_time)?)
}

/// The asker's answer about what has that key; `None` if it has none, or the library is not preloaded.
pub fn answer(key: u64) -> Option<Asked> {
    read(|shared| {
        let start = shared.found.start.as_ref();
        start
            .filter(|start| start.is_of(key, 0))
            .map(SharedAnswer::asked)
    })?
}

/// Keeps an answer about what has that key; in the asker.
pub fn set_answer(key: u64, asked: &Asked) {
    let answer = SharedAnswer::of(key, asked);
    change(|shared| shared.found.start = Some(answer));
}

/// What the next boot gives the pool of `size`, and the time of the look; `None` if nobody has looked.
pub fn boot(size: PageSize) -> Option<(PoolAtBoot, SystemTime)> {
    let of =
        |boot: &SharedBoot| (boot.time != 0).then(|| (boot.pool(size), system_time(boot.time)));
    read(|shared| of(&shared.found.boot))?
}

/// The asker's look at the next boot, if it was the first after a boot.
pub fn first_look() -> Option<BootLook> {
    read(|shared| shared.found.boot.first_look.as_ref().map(SharedLook::get))?
}

/// Keeps what the next boot gives, or why that is unknown; in the asker.
pub fn set_boot(boot: &Result<NextBoot, String>) {
    let boot = SharedBoot::of(boot);
    change(|shared| shared.found.boot = boot);
}

/// The time since what sets the pool at the next boot was read; `None` if nobody has.
pub fn since_boot_was_read() -> Option<Duration> {
    shmem::since(read(|shared| shared.found.boot.time)?)
}

/// The files that the configuration consists of, and whether these are all; none if the asker has not found them.
pub fn included_files() -> (Vec<PathBuf>, bool) {
    read(|shared| shared.found.included_files()).unwrap_or((Vec::new(), true))
}

/// Keeps the files that the configuration consists of; none if not all are known. In the asker.
pub fn set_included_files(names: &[&str]) {
    change(|shared| shared.found.set_included_files(names));
}
