//! The rings of io_uring that a PostgreSQL server has or asks for, and what the kernel lets it have.

use hugepage_kernel::{Bytes, PageSize};

/// Processes with a ring beside connections and workers: autovacuum's launcher and the slot synchronization worker
/// (`NUM_SPECIAL_WORKER_PROCS` in proc.h), and auxiliary processes that are not I/O workers (`NUM_AUXILIARY_PROCS`).
const OTHER_PROCESSES: u64 = 2 + AUXILIARY_PROCESSES;
const AUXILIARY_PROCESSES: u64 = 6;
/// I/O workers, which have no rings but a part in the default of `io_max_concurrency` (`MAX_IO_WORKERS`).
const MAX_IO_WORKERS: u64 = 32;
/// The largest default of `io_max_concurrency` (`AioChooseMaxConcurrency` in aio_init.c).
const MAX_DEFAULT_CONCURRENCY: u64 = 64;
const BLOCK: u64 = 8192;

/// The header of `struct io_rings`, rounded up (io_uring/io_uring.c).
const RING_HEADER: u64 = 384;
/// The size of a completion queue entry; there are two for each submission (io_uring_setup(2)).
const COMPLETION: u64 = 16;
/// The size of a submission queue entry, and of its index.
const SUBMISSION: u64 = 64;
const INDEX: u64 = 4;

/// The rings that a start makes with `io_method = io_uring`, from PostgreSQL 18 on (method_io_uring.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingDemand {
    /// One for each process that may run.
    pub count: u64,
    /// The submissions that each has room for: `io_max_concurrency`.
    pub entries: u64,
}

impl RingDemand {
    /// The rings that settings come to; `None` without `io_method = io_uring`. `number` returns a setting, or its default,
    /// which comes after its name; `shared_buffers` is a size.
    pub fn of_settings(
        io_method: Option<&str>,
        shared_buffers: Bytes,
        mut number: impl FnMut(&'static str, i64) -> i64,
    ) -> Option<Self> {
        if !io_method?.trim().eq_ignore_ascii_case("io_uring") {
            return None;
        }
        let mut setting = |name, default| u64::try_from(number(name, default)).unwrap_or(0);
        let backends = setting("max_connections", 100)
            .saturating_add(setting("autovacuum_worker_slots", 16))
            .saturating_add(setting("max_worker_processes", 8))
            .saturating_add(setting("max_wal_senders", 10));
        let count = backends.saturating_add(OTHER_PROCESSES);
        let by_default =
            || (shared_buffers.0 / BLOCK / count.saturating_add(MAX_IO_WORKERS)).clamp(1, MAX_DEFAULT_CONCURRENCY);
        let entries = u64::try_from(number("io_max_concurrency", -1)).ok().filter(|entries| *entries > 0);
        Some(Self { count, entries: entries.unwrap_or_else(by_default) })
    }

    /// The rings of a server whose largest number of backends (`MaxBackends`) is known.
    pub const fn of_backends(backends: u64, entries: u64) -> Self {
        Self { count: backends + AUXILIARY_PROCESSES, entries }
    }

    /// The memory of `count` such rings, of which the kernel locks whole pages of `base`.
    pub fn memory(self, count: u64, base: PageSize) -> Bytes {
        let entries = self.entries.max(1).next_power_of_two();
        let queues = RING_HEADER + entries * (2 * COMPLETION + INDEX);
        let part = base.bytes().0;
        let ring = queues.next_multiple_of(part) + (entries * SUBMISSION).next_multiple_of(part);
        Bytes(ring.saturating_mul(count))
    }
}

/// What the kernel lets the rings of one server have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingLimits {
    /// The size of base pages.
    pub base: PageSize,
    /// Whether `kernel.io_uring_disabled` (Linux 6.6) forbids them; the reason where that is unknown.
    pub is_disabled: Result<bool, String>,
    /// Whether the kernel counts them against `RLIMIT_MEMLOCK` of their user; `None` if unknown.
    pub counts_memlock: Option<bool>,
    /// The limit on locked memory.
    pub memlock: StartLimit,
    /// The limit on open files (`RLIMIT_NOFILE`), each ring being one.
    pub open_files: StartLimit,
    /// The rings that the server has open now, with those of segments that were lost at a crash.
    pub open: u64,
    /// Its other open files.
    pub other_files: u64,
    /// The memory of rings that other servers of its user have.
    pub locked_by_others: Bytes,
    /// The systemd service that starts it; `None` if none does, or unknown.
    pub service: Option<String>,
}

/// A limit on the resources of a server; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartLimit {
    /// The limit of the running postmaster, which a restart after a crash meets.
    pub running: Option<u64>,
    /// The limit of the next start: that of its systemd unit, or else the same.
    pub next: Option<u64>,
}

/// Why the kernel refuses the rings of a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingRefusal {
    /// `kernel.io_uring_disabled`.
    Disabled,
    /// The limit on locked memory.
    Memlock {
        /// The rings.
        count: u64,
        /// The memory that is needed, with that of open rings.
        needed: Bytes,
        /// The limit.
        limit: Bytes,
        /// What of the limit rings of other servers of the user take.
        others: Bytes,
    },
    /// The limit on open files.
    OpenFiles {
        /// The rings.
        count: u64,
        /// The least that is enough.
        needed: u64,
        /// The limit.
        limit: u64,
    },
}

/// Whether a start gets its rings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RingAnswer {
    /// It asks for none, or nothing that is known prevents them.
    #[default]
    Granted,
    /// The kernel refuses them, and the server does not start.
    Refused(RingRefusal),
    /// It depends on this; a part of a sentence behind "depends on".
    Unknown(String),
}
