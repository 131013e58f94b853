//! Termination signals: a command checks for them between two steps, undoes its changes, and then ends.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};
use signal_hook::{SigId, flag};

/// Records that a termination signal was received.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Catches termination signals from now on.
    pub fn catch() -> io::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Whether a signal was received.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A timer that a termination signal interrupts.
#[derive(Debug)]
pub struct SignalTimer(UnixStream, Vec<SigId>);

impl SignalTimer {
    /// Catches termination signals from now on.
    pub fn new() -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut registered = Vec::new();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            registered.push(pipe::register(signal, theirs.try_clone()?)?);
        }
        Ok(Self(ours, registered))
    }

    /// Tells this process nothing more of signals: in a child, they are the parent's.
    pub fn forget(&self) {
        self.1.iter().for_each(|signal| {
            unregister(*signal);
        });
    }

    /// Whether a signal was received, without waiting.
    pub fn has_signal(&mut self) -> io::Result<bool> {
        self.0.set_nonblocking(true)?;
        match self.0.read(&mut [0; 64]) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits for `time`; returns whether a signal was received.
    pub fn wait(&mut self, time: Duration) -> io::Result<bool> {
        // Zero would wait forever.
        self.0.set_read_timeout(Some(time.max(Duration::from_millis(1))))?;
        match self.0.read(&mut [0]) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
