//! What was lost between two records of one instance.

use crate::PageSize;
use crate::history::Record;
use crate::model::Lost;

/// What `now` has lost against `before`; `None` if nothing.
///
/// From huge to base pages, from whole to partly transparent, from larger to smaller huge pages, from a state that a
/// restart keeps to one that it does not.
pub fn regression(before: &Record, now: &Record) -> Option<Lost> {
    let (was, is) = (rank(before)?, rank(now)?);
    let smaller = was == is && is == Rank::Hugetlb && now.page_size < before.page_size;
    if was > is || smaller {
        let what = format!("was in {}, is in {}", pages(before), pages(now));
        return Some(Lost { what, only_outlook: false });
    }
    let unsafe_now = matches!(now.restart_outlook.as_str(), "mixed" | "base" | "fails");
    let was_safe = was == Rank::Hugetlb && before.restart_outlook == "hugetlb";
    (is == Rank::Hugetlb && was_safe && unsafe_now).then(|| Lost {
        what: format!("would have kept {} at a restart, and would lose them now", pages(before)),
        only_outlook: true,
    })
}

/// How good a landing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Base,
    PartialThp,
    Thp,
    Mixed,
    Hugetlb,
}

/// `None` for a landing that could not be known: it is neither better nor worse than another.
fn rank(record: &Record) -> Option<Rank> {
    match record.landed_in.as_str() {
        "hugetlb" => Some(Rank::Hugetlb),
        "mixed" => Some(Rank::Mixed),
        "thp" => Some(Rank::Thp),
        "partial thp" => Some(Rank::PartialThp),
        "base" => Some(Rank::Base),
        _ => None,
    }
}

/// "huge pages of 2 MB", "4 kB pages", "transparent huge pages".
fn pages(record: &Record) -> String {
    let size = record.page_size.and_then(PageSize::new).map_or("unknown size".to_owned(), |size| size.to_string());
    match record.landed_in.as_str() {
        "hugetlb" => format!("huge pages of {size}"),
        "mixed" => "huge pages only in part".to_owned(),
        "thp" => "transparent huge pages".to_owned(),
        "partial thp" => "partly transparent huge pages".to_owned(),
        _ => format!("{size} pages"),
    }
}
