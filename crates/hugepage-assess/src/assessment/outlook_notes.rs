//! Why the outlooks of a server are unknown, for the notes of its row.

use hugepage_kernel::Pages;

use crate::assessment::{Forecast, Status};
use crate::model::{CrashRecovery, RingAnswer};

/// For a segment that may grow.
const OF_GROWTH: &str = "whether a restart, also after a crash, gets huge pages depends on whose the pages in use are: shared \
                         memory that may grow takes pages when they are touched, so they may be its own or those of others";

/// What only the running server knows.
const OF_START: &str = "what a restart after a crash gets depends on the settings that the server was started with, and its \
                        files have changed since";

impl Status {
    /// Why an outlook is unknown, as far as no other note says it; for the notes of a row.
    pub fn notes_on_outlook(&self) -> impl Iterator<Item = String> {
        if self.facts.own_at_least() < self.facts.own() {
            let unknown = [&self.forecast, &self.crash].into_iter().any(|start| start.note_on_surplus("").is_some());
            return [unknown.then(|| OF_GROWTH.to_owned()), None].into_iter().flatten();
        }
        let of_rings = |start: &Forecast, what: &str| match &start.rings {
            RingAnswer::Unknown(why) => Some(format!("whether {what} succeeds depends on {why}")),
            _ => None,
        };
        let kept = self.facts.kept_at_crash;
        let restart = of_rings(&self.forecast, "a restart").or_else(|| match kept.before() {
            Pages(0) => self.forecast.note_on_surplus("a restart"),
            before => self.forecast.note_on_surplus("a restart").map(|_| {
                format!(
                    "whether a restart gets huge pages may depend on the pages, at most {before}, that io_uring rings \
                     of earlier crashes keep until the server stops"
                )
            }),
        });
        let recovery = &self.facts.crash_recovery;
        let crash = self.crash_outlook().and_then(|_| match (recovery, kept.at_most) {
            (CrashRecovery::Unknown(why), _) => Some(why.clone()),
            (CrashRecovery::Refused(_), _) => {
                recovery.error().map(|error| format!("a restart after a crash would fail: {error}"))
            }
            _ if self.crash_by_start => Some(OF_START.to_owned()),
            _ if matches!(self.crash.rings, RingAnswer::Unknown(_)) => of_rings(&self.crash, "a restart after a crash"),
            (_, Pages(0)) => self.crash.note_on_surplus("a restart after a crash"),
            (_, at_most) => self.crash.note_on_surplus("a restart after a crash").map(|_| {
                format!(
                    "whether a restart after a crash gets huge pages may depend on the pages that io_uring rings keep at \
                     each crash: at most {at_most}"
                )
            }),
        });
        [restart, crash].into_iter().flatten()
    }
}
