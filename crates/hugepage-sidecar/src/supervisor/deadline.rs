//! The deadline of a process that reads, in memory that it shares with the one that watches over it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, ptr};

use hugepage_kernel::source::current_read::SharedReads;

/// There is no deadline: what is printed may have a slow reader.
const NONE: u64 = 0;
/// There is none, and a signal gives none either: the process changes the host, and restores it after a signal.
const CHANGING: u64 = u64::MAX;

/// What both processes see.
#[derive(Debug)]
pub struct Shared {
    /// Milliseconds since `begun` of [`Deadline`], or one of the constants above.
    at: AtomicU64,
    /// What the process reads, and what it leaves out.
    pub reads: SharedReads,
}

/// The deadline, with the clock that both processes have.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    begun: Instant,
    timeout: Duration,
    /// What both see.
    pub shared: &'static Shared,
}

static OF_THIS_PROCESS: OnceLock<Deadline> = OnceLock::new();

impl Deadline {
    /// A deadline that is `timeout` after each beginning of a reading.
    pub fn new(timeout: Duration) -> io::Result<Self> {
        let (length, flags) = (size_of::<Shared>(), libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses an address where nothing is.
        #[allow(unsafe_code)]
        let address = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is a page or more, never unmapped, and zeroes are a valid value of all its atomic numbers.
        #[allow(unsafe_code)]
        let shared = unsafe { &*address.cast::<Shared>() };
        Ok(Self { begun: Instant::now(), timeout, shared })
    }

    /// In the process that reads: what [`begin_reading`] and the others are about.
    pub fn keep_in_this_process(self) {
        self.shared.reads.use_in_this_process();
        let _ = OF_THIS_PROCESS.set(self);
    }

    /// Begins a reading.
    pub fn begin(&self) {
        self.set(Instant::now() + self.timeout);
    }

    /// Brings the deadline forward after a signal, unless the process changes the host.
    pub fn end_within(&self, grace: Duration) {
        if self.shared.at.load(Ordering::Relaxed) != CHANGING {
            self.set(self.at().unwrap_or(Instant::now() + grace).min(Instant::now() + grace));
        }
    }

    /// When it is; `None` if there is none now.
    pub fn at(&self) -> Option<Instant> {
        match self.shared.at.load(Ordering::Relaxed) {
            NONE | CHANGING => None,
            at => self.begun.checked_add(Duration::from_millis(at)),
        }
    }

    /// The time that a reading has.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    fn set(&self, at: Instant) {
        let at = at.duration_since(self.begun).as_millis();
        self.shared.at.store(u64::try_from(at).unwrap_or(CHANGING - 1).max(1), Ordering::Relaxed);
    }
}

/// Begins a reading.
pub fn begin_reading() {
    if let Some(deadline) = OF_THIS_PROCESS.get() {
        deadline.set(Instant::now() + deadline.timeout);
    }
}

/// All is read: what follows, such as printing, has no deadline.
pub fn end_reading() {
    if let Some(deadline) = OF_THIS_PROCESS.get()
        && deadline.at().is_some()
    {
        deadline.shared.at.store(NONE, Ordering::Relaxed);
    }
}

/// What follows changes the host, and is not broken off.
pub fn begin_change() {
    if let Some(deadline) = OF_THIS_PROCESS.get() {
        deadline.shared.at.store(CHANGING, Ordering::Relaxed);
    }
}

/// The time that a program gets which this process waits for: at most half of what is left, so that the others have an
/// answer although one has none.
pub fn time_for_program(most: Duration) -> Duration {
    let left = OF_THIS_PROCESS.get().and_then(Deadline::at).map(|at| at.saturating_duration_since(Instant::now()));
    left.map_or(most, |left| most.min(left / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_brings_it_forward_but_not_in_a_change() {
        let (second, now) = (Duration::from_secs(1), Instant::now());
        let deadline = Deadline::new(10 * second).unwrap();
        assert_eq!(deadline.at(), None);
        deadline.begin();
        assert!(deadline.at().unwrap() > now + 9 * second);
        deadline.end_within(3 * second);
        assert!(deadline.at().unwrap() < now + 5 * second);
        deadline.end_within(8 * second);
        assert!(deadline.at().unwrap() < now + 5 * second, "a second signal gives no more time");
        for (state, is_set) in [(NONE, true), (CHANGING, false)] {
            deadline.shared.at.store(state, Ordering::Relaxed);
            assert_eq!(deadline.at(), None);
            deadline.end_within(3 * second);
            assert_eq!(deadline.at().is_some(), is_set);
        }
    }
}
