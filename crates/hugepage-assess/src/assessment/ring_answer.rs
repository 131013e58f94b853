//! Whether the kernel lets a start have its io_uring rings. Without them the server does not start, whatever pages it has.

use hugepage_kernel::Bytes;
use hugepage_kernel::host::kernel_release::KernelRelease;

use crate::assessment::{Forecast, Outlook};
use crate::model::{Cause, RingAnswer, RingDemand, RingLimits, RingRefusal};

/// The files that a start must be able to open beside its rings (`FD_MINFREE` and `NUM_RESERVED_FDS` in fd.c), and the three
/// that it begins with.
const MIN_FILES: u64 = 48 + 10 + 3;
/// More files than a postmaster has open when it makes its rings, or opens for connections after that.
const FILES_AT_START: u64 = 64;

/// Whether the kernel of a host counts rings as locked memory: Linux 6.14 does (`io_create_region` in io_uring/memmap.c), and
/// those from 5.12 on did not. `None` if unknown, as for those before, which counted otherwise.
pub fn counts_memlock(release: Option<KernelRelease>) -> Option<bool> {
    let release = release?;
    match (release.is_before(5, 12, 0), release.is_before(6, 14, 0)) {
        (true, _) => None,
        (_, true) => (!release.has_backports).then_some(false),
        (_, false) => Some(true),
    }
}

/// What a start asks for: at least, and at most where not all of it is known.
struct AtLeastAtMost<T>(T, T);

impl RingLimits {
    /// Whether the next start gets the rings of `demand`. Those that are open now are closed by then.
    pub fn at_start(&self, demand: RingDemand) -> RingAnswer {
        // PostgreSQL tries the kernel with one ring more, which is closed but may still be counted.
        let memory = |more| demand.memory(demand.count.saturating_add(more), self.base);
        let files = demand.count.saturating_add(MIN_FILES);
        self.answer(
            demand.count,
            &AtLeastAtMost(memory(0), memory(1)),
            (self.memlock.next, self.open_files.next),
            &AtLeastAtMost(files, files.saturating_add(FILES_AT_START)),
        )
    }

    /// Whether a restart after a crash gets them. `is_kept`: whether the postmaster is known to keep those that are open. The
    /// kernel counts rings for some time after they were closed (`io_ring_exit_work` in io_uring/io_uring.c), so that even
    /// those of a server that closes them may be in the way.
    pub fn at_crash(&self, demand: RingDemand, is_kept: bool) -> RingAnswer {
        let more = self.open.max(1);
        let kept = if is_kept { self.open } else { 0 };
        let memory = |more: u64| demand.memory(demand.count.saturating_add(more), self.base);
        let files = |more: u64| demand.count.saturating_add(more).saturating_add(self.other_files);
        self.answer(
            demand.count,
            &AtLeastAtMost(memory(kept), memory(more)),
            (self.memlock.running, self.open_files.running),
            &AtLeastAtMost(files(kept), files(more).saturating_add(FILES_AT_START)),
        )
    }

    /// The limit on locked memory with which both get them for certain.
    pub fn enough_memory(&self, demand: RingDemand) -> Bytes {
        let count = demand.count.saturating_add(self.open.max(demand.count));
        let memory = demand.memory(count, self.base).saturating_add(self.locked_by_others);
        Bytes(memory.0.next_multiple_of(1 << 20))
    }

    /// The limit on open files with which both get them for certain, with the 1,000 files that each process may have open
    /// (`max_files_per_process`).
    pub fn enough_files(&self, demand: RingDemand) -> u64 {
        let rings = demand.count.saturating_add(self.open.max(demand.count));
        rings.saturating_add(self.other_files.max(FILES_AT_START)).saturating_add(1000)
    }

    fn answer(
        &self,
        count: u64,
        memory: &AtLeastAtMost<Bytes>,
        (memlock, open_files): (Option<u64>, Option<u64>),
        files: &AtLeastAtMost<u64>,
    ) -> RingAnswer {
        let others = self.locked_by_others;
        let memlock = memlock.map(Bytes).filter(|_| self.counts_memlock != Some(false));
        let is_beyond = |memory: Bytes| memlock.filter(|limit| memory.saturating_add(others) > *limit);
        match (&self.is_disabled, is_beyond(memory.0), self.counts_memlock) {
            (Ok(true), ..) => return RingAnswer::Refused(RingRefusal::Disabled),
            (_, Some(limit), Some(true)) => {
                return RingAnswer::Refused(RingRefusal::Memlock { count, needed: memory.0, limit, others });
            }
            _ => {}
        }
        if let Some(limit) = open_files.filter(|limit| files.0 > *limit) {
            return RingAnswer::Refused(RingRefusal::OpenFiles { count, needed: files.1, limit });
        }
        if let Err(why) = &self.is_disabled {
            return RingAnswer::Unknown(why.clone());
        }
        if let Some(limit) = is_beyond(memory.1) {
            let why = match self.counts_memlock {
                None => "this distribution's kernel: if it counts io_uring rings as locked memory, as Linux 6.14 does,",
                Some(_) => "how fast the kernel forgets rings that were closed: with those",
            };
            return RingAnswer::Unknown(format!(
                "{why} the server needs {}, and its memlock limit is {limit}",
                memory.1.saturating_add(others)
            ));
        }
        match open_files.filter(|limit| files.1 > *limit) {
            Some(limit) => RingAnswer::Unknown(format!(
                "its open files: {count} io_uring rings and other files may be up to {}, and its limit is {limit}",
                files.1
            )),
            None => RingAnswer::Granted,
        }
    }
}

impl Forecast {
    /// The forecast of a start that gets its rings so.
    #[must_use]
    pub fn with_rings(self, rings: RingAnswer) -> Self {
        let outlook = match (&rings, self.outlook) {
            (RingAnswer::Granted, _) | (RingAnswer::Unknown(_), Outlook::Fails) => return self,
            (RingAnswer::Refused(_), _) => Outlook::Fails,
            (RingAnswer::Unknown(_), _) => Outlook::Unknown,
        };
        Self { outlook, cause: Some(Cause::IoUring), rings, ..self }
    }
}
