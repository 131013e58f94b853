//! At most [`SLOTS`] programs at a time for a cluster: each takes some memory and 30 ms of a CPU, and a monitoring system
//! may ask in many sessions at once.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::latch::{LatchGuard, is_stopping, wait};

/// How many programs run at a time.
pub const SLOTS: usize = 2;
/// How long to sleep before the next look for a free slot.
const PAUSE: Duration = Duration::from_millis(10);

/// A slot that this process has; free again on drop, and when the process ends in whatever way.
pub struct Turn {
    _locked: File,
}

impl Turn {
    /// Waits for a slot, one lock file each in `directory`; `None` at the deadline. A cancel ends the wait.
    pub fn wait_for(directory: &Path, prefix: &str, deadline: Instant) -> io::Result<Option<Self>> {
        let latch = LatchGuard;
        let slots = (1..=SLOTS).map(|slot| lock_file(&directory.join(format!("{prefix}slot{slot}"))));
        let mut slots = slots.collect::<io::Result<Vec<File>>>()?;
        loop {
            for slot in 0..slots.len() {
                match slots[slot].try_lock() {
                    Ok(()) => return Ok(Some(Self { _locked: slots.swap_remove(slot) })),
                    Err(TryLockError::WouldBlock) => {}
                    Err(TryLockError::Error(error)) => return Err(error),
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            if is_stopping() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            wait(&latch, c"HugepagesServerProgram", None, PAUSE);
        }
    }
}

/// A link in its place is refused.
#[expect(clippy::disallowed_methods, reason = "the server's own directory")]
fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}
