//! Why the outlooks of a server are unknown, for the notes of its row.

use crate::assessment::Status;
use crate::model::CrashRecovery;

/// What only the running server knows.
const OF_START: &str = "what a restart after a crash gets depends on the settings that the server was started with, and its \
                        files have changed since";

/// Why it is unknown what a server with io_uring gets: a clause.
pub(crate) const OF_RINGS: &str =
    "with io_method = io_uring old rings may keep their huge pages until the server stops";

/// What no forecast of a start with io_uring covers.
pub const UNCHECKED_RINGS: &str = "whether the kernel refuses the rings of io_method = io_uring (RLIMIT_MEMLOCK, RLIMIT_NOFILE, \
                                   kernel.io_uring_disabled) is not checked";

impl Status {
    /// Why an outlook is unknown, as far as no other note says it; for the notes of a row.
    pub fn notes_on_outlook(&self) -> impl Iterator<Item = String> {
        let restart = match self.facts.rings_may_hold_pages_of(&self.forecast) {
            true => Some(format!("whether a restart gets huge pages is unknown: {OF_RINGS}")),
            false => self.forecast.note_on_surplus("a restart"),
        };
        let recovery = &self.facts.crash_recovery;
        let crash = self.crash_outlook().and_then(|_| match recovery {
            CrashRecovery::Unknown(why) => Some(why.clone()),
            CrashRecovery::Refused(_) => {
                recovery.error().map(|error| format!("a restart after a crash would fail: {error}"))
            }
            CrashRecovery::Possible if self.crash_by_start => Some(OF_START.to_owned()),
            CrashRecovery::Possible if self.facts.may_keep_rings(&self.crash) => {
                Some(format!("what a restart after a crash gets is unknown: {OF_RINGS}"))
            }
            CrashRecovery::Possible => self.crash.note_on_surplus("a restart after a crash"),
        });
        [restart, crash, self.facts.pending.asks_for_rings().then(|| UNCHECKED_RINGS.to_owned())].into_iter().flatten()
    }
}
