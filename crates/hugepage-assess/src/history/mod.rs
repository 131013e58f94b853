//! One record for every start and every change of state of an instance, and what was lost between two of them.

pub mod record;

use humantime::parse_rfc3339;

use hugepage_facts::{Cause, Landing, Loss, Lost, PageKind};

use crate::assessment::Outlook;
use crate::history::record::Before;
pub use crate::history::record::{Event, Record};

/// What `now` has lost against `before`; `None` if nothing.
/// A loss is: huge to base pages, whole to partly transparent, larger to smaller huge pages, or an outlook of huge pages
/// to another one. With `huge_pages = off` nothing is lost: base pages are what was asked for.
pub fn regression(before: &Before, now: &Record) -> Option<Lost> {
    // Base pages by choice are no loss.
    if now.cause == Some(Cause::Disabled) {
        return None;
    }
    // An unknown landing is neither better nor worse than another.
    rank(before.landed_in).and(rank(now.landed_in))?;
    let kind = |landing, size| PageKind { landing, size };
    let had = kind(before.landed_in, before.page_size);
    let lost = lost_pages(had, kind(now.landed_in, now.page_size));
    if lost.is_some() {
        return lost;
    }
    let is_unsafe = matches!(
        now.restart_outlook,
        Outlook::Mixed | Outlook::Base | Outlook::Fails
    );
    let was_safe =
        before.landed_in == Landing::Hugetlb && before.restart_outlook == Outlook::Hugetlb;
    (now.landed_in == Landing::Hugetlb && was_safe && is_unsafe).then_some(Lost::Outlook(had))
}

/// What is lost if memory was in pages of the one kind and is in those of the other; `None` if nothing.
pub fn lost_pages(was: PageKind, is: PageKind) -> Option<Lost> {
    let (before, now) = (rank(was.landing)?, rank(is.landing)?);
    let smaller = before == now && is.landing == Landing::Hugetlb && is.size < was.size;
    (before > now || smaller).then_some(Lost::Pages { was, is })
}

impl Record {
    /// Compares the record with the previous one of the same instance. Stores and returns what was lost.
    pub fn compare_with(&mut self, before: &Self) -> Option<Lost> {
        let before = Before::state_of(before);
        let lost = regression(&before, self)?;
        self.lost = Some(before);
        self.detail = Some(lost.to_string());
        Some(lost)
    }

    /// What the record is of, if `before` is the previous one: a change of transparent huge pages has an event of its own.
    pub fn event_since(&self, before: &Self) -> Event {
        let (was, is) = (before.landed_in, self.landed_in);
        if self.event != Event::Change || !(was.is_transparent() || is.is_transparent()) {
            return self.event;
        }
        match rank(was).zip(rank(is)) {
            Some((was, is)) if was < is => Event::Collapse,
            Some((was, is)) if was > is => Event::Split,
            _ => self.event,
        }
    }

    /// The loss that the record has, as an assessment takes it; `None` if nothing was lost.
    pub fn loss(&self) -> Option<Loss> {
        let lost = regression(self.lost.as_ref()?, self)?;
        Some(Loss {
            at: parse_rfc3339(&self.recorded_at).ok()?,
            lost,
        })
    }
}

/// How good a landing is; `None` for an unknown one, which is neither better nor worse than another.
const fn rank(landing: Landing) -> Option<u8> {
    match landing {
        Landing::Hugetlb => Some(4),
        Landing::Mixed => Some(3),
        Landing::Thp => Some(2),
        Landing::PartialThp => Some(1),
        Landing::Base => Some(0),
        Landing::Unknown => None,
    }
}
