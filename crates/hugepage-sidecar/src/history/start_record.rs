//! The record of the start of an instance, and who made it.

use hugepage_assess::history::Record;
use hugepage_kernel::Pages;

/// The record of a start.
#[derive(Clone, Debug)]
pub(super) enum StartRecord {
    /// Of the preloaded extension.
    ByServer(Record),
    /// Of `watch`.
    ByWatch(Record),
}

impl StartRecord {
    pub(super) const fn record(&self) -> &Record {
        match self {
            Self::ByServer(record) | Self::ByWatch(record) => record,
        }
    }

    /// The pages that the server recorded as needed. The files that `watch` read may have changed since the start.
    pub(super) fn pages_needed(&self) -> Option<Pages> {
        match self {
            Self::ByServer(record) => record.pages_needed.map(Pages),
            Self::ByWatch(_) => None,
        }
    }
}
