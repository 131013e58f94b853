//! What is recorded of an instance, as a list.

use hugepage_assess::history::Record;

use crate::history::stored::StoredHistory;
use crate::output::rows::{InstanceRow, time};

/// Records that are listed.
const MAX_ENTRIES: usize = 25;

/// The histories of one instance.
#[derive(Debug)]
pub struct InstanceHistory<'a> {
    pub row: &'a InstanceRow,
    /// Histories with records.
    pub recorded: Vec<RecordedHistory>,
    /// Whether a history could not be read.
    pub is_hidden: bool,
    /// Notes on files and records that were skipped.
    pub notes: Vec<String>,
}

/// One history.
#[derive(Debug)]
pub struct RecordedHistory {
    pub by: &'static str,
    pub path: String,
    pub starts: usize,
    pub losses: usize,
    /// The newest first.
    pub entries: Vec<Record>,
    /// Number of older records that are not listed.
    pub omitted: usize,
}

impl<'a> InstanceHistory<'a> {
    /// `notes`: on what could not be read.
    pub fn new(row: &'a InstanceRow, (stored, mut notes): (Vec<StoredHistory>, Vec<String>)) -> Self {
        let is_hidden = !notes.is_empty();
        for stored in &stored {
            if stored.foreign > 0 {
                notes.push(format!("{} records in \"{}\" belong to other instances", stored.foreign, stored.path));
            }
            if stored.damaged > 0 {
                notes.push(format!("{} lines in \"{}\" are damaged", stored.damaged, stored.path));
            }
        }
        let recorded = stored.into_iter().filter(|stored| !stored.records.is_empty()).map(RecordedHistory::new);
        Self { row, recorded: recorded.collect(), is_hidden, notes }
    }
}

impl RecordedHistory {
    fn new(StoredHistory { by, path, mut records, .. }: StoredHistory) -> Self {
        let starts = records.iter().filter(|record| record.event.is_start()).count();
        let losses = records.iter().filter(|record| record.lost.is_some()).count();
        let omitted = records.len().saturating_sub(MAX_ENTRIES);
        records.drain(..omitted);
        records.reverse();
        Self { by, path, starts, losses, entries: records, omitted }
    }
}

/// The time of a record, as in RFC 3339 if it can be read.
pub fn recorded_at(record: &Record) -> String {
    humantime::parse_rfc3339(&record.recorded_at).map_or_else(|_| record.recorded_at.clone(), time)
}
