//! The record of the start of an instance, and who made it.

use hugepage_assess::history::Record;

/// The record of a start.
#[derive(Clone, Debug)]
pub(super) struct StartRecord {
    pub(super) record: Record,
    /// Whether the preloaded extension made it, and not `watch`.
    pub(super) is_by_server: bool,
}
