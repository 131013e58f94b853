//! Termination signals: a command checks for them between two steps, undoes its changes, and then ends.

use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Each of them ends a command that has undone its changes. Timers and limits are those of the caller, also of one of sudo(8).
const TERMINATION: [i32; 11] = [
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
];

/// Catches termination signals from now on, after which the result is set, and holds back all others until this program ends.
pub fn catch() -> io::Result<Arc<AtomicBool>> {
    let has_signal = Arc::default();
    TERMINATION
        .iter()
        .try_for_each(|signal| flag::register(*signal, Arc::clone(&has_signal)).map(|_| ()))?;
    let held_back = TERMINATION
        .iter()
        .fold(u64::MAX, |held, signal| held & !(1 << (signal - 1)));
    // SAFETY: the kernel reads the eight bytes of a set. The C library would leave out some that end this program, too.
    #[allow(unsafe_code)]
    let done = unsafe {
        let old = ptr::null_mut::<u64>();
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            &raw const held_back,
            old,
            size_of::<u64>(),
        )
    };
    if done == 0 {
        Ok(has_signal)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A timer that a termination signal interrupts.
#[derive(Debug)]
pub struct SignalTimer {
    woken: UnixStream,
    has_signal: Arc<AtomicBool>,
}

impl SignalTimer {
    /// Catches termination signals from now on, after which `has_signal` is set.
    pub fn new(has_signal: &Arc<AtomicBool>) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        for signal in TERMINATION {
            flag::register(signal, Arc::clone(has_signal))?;
            pipe::register(signal, theirs.try_clone()?)?;
        }
        Ok(Self {
            woken: ours,
            has_signal: Arc::clone(has_signal),
        })
    }

    /// Whether a signal was received.
    pub fn has_signal(&self) -> bool {
        self.has_signal.load(Ordering::Relaxed)
    }

    /// Waits for `time`; returns whether a signal was received.
    pub fn wait(&mut self, time: Duration) -> io::Result<bool> {
        // Zero would wait forever.
        self.woken
            .set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
        match self.woken.read(&mut [0]) {
            Ok(_) => Ok(true),
            // The end of a reader interrupts it, too; what ends this program is in the socket by then.
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
