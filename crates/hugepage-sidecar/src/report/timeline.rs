//! A history as a timeline: the pages of shared memory over time, and events.

use std::time::{Duration, SystemTime};

use hugepage_assess::assessment::Outlook;
use hugepage_assess::history::{Event, Record};
use hugepage_assess::model::Landing;
use hugepage_kernel::Bytes;

use super::scale::percent;
use crate::history::stored::StoredHistory;
use crate::output::rows::{InstanceRow, time};

/// Records that are listed as text; the chart has all.
const MAX_ENTRIES: usize = 25;

/// The histories of one instance.
#[derive(Debug)]
pub struct InstanceHistory<'a> {
    pub row: &'a InstanceRow,
    /// Histories with records.
    pub timelines: Vec<Timeline>,
    /// Whether a history could not be read.
    pub is_hidden: bool,
    /// Notes on files and records that were skipped.
    pub notes: Vec<String>,
}

/// The timeline of one history.
#[derive(Debug)]
pub struct Timeline {
    pub by: &'static str,
    pub path: String,
    pub from: String,
    pub to: String,
    pub starts: usize,
    pub losses: usize,
    pub spans: Vec<TimelineSpan>,
    pub marks: Vec<TimelineEvent>,
    /// The newest first.
    pub entries: Vec<Record>,
    /// Number of older records that are not listed.
    pub omitted: usize,
}

/// A period without change.
#[derive(Debug)]
pub struct TimelineSpan {
    pub x: String,
    pub width: String,
    /// `huge`, `part`, `base`, `unknown`.
    pub level: &'static str,
    pub y: u32,
    pub height: u32,
    /// Whether the next start would lose huge pages.
    pub is_at_risk: bool,
    pub title: String,
}

/// An event on the timeline.
#[derive(Debug)]
pub struct TimelineEvent {
    pub x: String,
    /// `start`, `crash`, `lost`.
    pub what: &'static str,
    pub title: String,
}

impl<'a> InstanceHistory<'a> {
    /// `notes`: on what could not be read. `taken_at`: when the survey was.
    pub fn new(
        taken_at: SystemTime,
        row: &'a InstanceRow,
        (stored, mut notes): (Vec<StoredHistory>, Vec<String>),
    ) -> Self {
        let is_hidden = !notes.is_empty();
        for stored in &stored {
            if stored.foreign > 0 {
                notes.push(format!("{} records in \"{}\" belong to other instances", stored.foreign, stored.path));
            }
            if stored.damaged > 0 {
                notes.push(format!("{} lines in \"{}\" are damaged", stored.damaged, stored.path));
            }
        }
        let timelines = stored.into_iter().filter_map(|stored| Timeline::new(stored, taken_at)).collect();
        Self { row, timelines, is_hidden, notes }
    }
}

impl Timeline {
    fn new(stored: StoredHistory, until: SystemTime) -> Option<Self> {
        let dated: Vec<_> = stored.records.iter().filter_map(|record| Some((moment(record)?, record))).collect();
        let first = dated.iter().map(|(at, _)| *at).min()?;
        // A tree may be older than its history, and clocks may be set back.
        let last = dated.iter().map(|(at, _)| *at).max()?.max(until);
        let place = |at: SystemTime| percent(millis(first, at), millis(first, last));
        let ends = dated.iter().skip(1).map(|(at, _)| *at).chain([last]);
        let span = |((at, record), end): (&(SystemTime, &Record), SystemTime)| {
            let (level, height) = level(record.landed_in);
            TimelineSpan {
                x: place(*at),
                width: percent(millis(*at, end), millis(first, last)),
                level,
                y: 96 - height,
                height,
                is_at_risk: level == "huge"
                    && matches!(record.restart_outlook, Outlook::Mixed | Outlook::Base | Outlook::Fails),
                title: format!("{} from {} to {}", state_text(record), time(*at), time(end)),
            }
        };
        let lost = |record: &&Record| record.lost.is_some();
        Some(Self {
            from: time(first),
            to: time(last),
            starts: stored.records.iter().filter(|record| record.event.is_start()).count(),
            losses: stored.records.iter().filter(lost).count(),
            spans: dated.iter().zip(ends).map(span).collect(),
            marks: dated.iter().flat_map(|(at, record)| marks(place(*at), record)).collect(),
            entries: stored.records.iter().rev().take(MAX_ENTRIES).cloned().collect(),
            omitted: stored.records.len().saturating_sub(MAX_ENTRIES),
            by: stored.by,
            path: stored.path,
        })
    }
}

/// The time of a record, as in RFC 3339 if it can be read.
pub fn recorded_at(record: &Record) -> String {
    moment(record).map_or_else(|| record.recorded_at.clone(), time)
}

fn moment(record: &Record) -> Option<SystemTime> {
    humantime::parse_rfc3339(&record.recorded_at).ok()
}

/// Milliseconds between two times; 0 if the clock was set back.
fn millis(from: SystemTime, to: SystemTime) -> u64 {
    u64::try_from(to.duration_since(from).unwrap_or(Duration::ZERO).as_millis()).unwrap_or(u64::MAX)
}

/// The CSS class and the height of a landing in pixels.
const fn level(landed_in: Landing) -> (&'static str, u32) {
    match landed_in {
        Landing::Hugetlb => ("huge", 92),
        Landing::Mixed | Landing::Thp | Landing::PartialThp => ("part", 58),
        Landing::Base => ("base", 24),
        Landing::Unknown => ("unknown", 8),
    }
}

fn state_text(record: &Record) -> String {
    match &record.page_size {
        Some(page_size) => format!("{} in pages of {}", record.landed_in, Bytes(*page_size)),
        None => record.landed_in.to_string(),
    }
}

fn marks(x: String, record: &Record) -> impl Iterator<Item = TimelineEvent> {
    let what = match record.event {
        Event::Start => Some("start"),
        Event::CrashRestart => Some("crash"),
        Event::Change => None,
    };
    let at = moment(record).map(time).unwrap_or_default();
    let lost = record.lost.as_ref().map(|_| "lost");
    let title = move |what| match (what, &record.detail) {
        ("lost", Some(detail)) => format!("lost at {at}: {detail}"),
        _ => format!("{} at {at}", record.event.name()),
    };
    [what, lost].into_iter().flatten().map(move |what| TimelineEvent { x: x.clone(), what, title: title(what) })
}
